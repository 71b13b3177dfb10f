"""Where the README's figures come from. Each script prints a table and, with --json, data."""
