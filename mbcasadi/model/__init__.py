"""(room: model)"""
