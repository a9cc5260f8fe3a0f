"""One judged run, and its repetitions under other conditions."""
