"""(room: spatial)"""
