"""(room: system)"""
