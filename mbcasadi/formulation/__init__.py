"""(room: formulation)"""
