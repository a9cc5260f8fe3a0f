"""(room: constraints)"""
