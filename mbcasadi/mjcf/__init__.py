"""(room: mjcf)"""
