"""Two rates in one export: a law that plans, and a law that follows its plans."""
