"""(room: plant)"""
