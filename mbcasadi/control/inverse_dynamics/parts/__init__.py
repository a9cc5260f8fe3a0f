"""Parts of an inverse-dynamics controller, one file each."""
