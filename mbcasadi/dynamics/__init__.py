"""(room: dynamics)"""
