"""(room: linalg)"""
