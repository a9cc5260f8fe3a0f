"""(room: validation)"""
