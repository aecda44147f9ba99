"""Values with unresolved calls: storage form, masking of secrets, path lookup."""
