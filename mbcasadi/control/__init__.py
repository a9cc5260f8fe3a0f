"""(room: control)"""
