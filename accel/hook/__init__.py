"""Installing: finding functions as modules are imported, replacing them, putting them back."""
