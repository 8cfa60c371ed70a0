"""The bus: what sift announces to the rest of the account."""
