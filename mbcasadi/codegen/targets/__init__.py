"""Programs of an export for other targets: replayed records, footprints, worst cases."""
