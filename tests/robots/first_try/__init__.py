"""Every robot of a folder at the first try: `init`, then `validate`, nothing edited."""
