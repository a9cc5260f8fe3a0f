"""(room: codegen)"""
