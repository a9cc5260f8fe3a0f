"""Around an exported controller: plausible inputs, limits of rate, a watchdog, fades, a log."""
