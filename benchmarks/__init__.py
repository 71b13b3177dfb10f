"""Where the README's figures come from. Each script says in its head how it is called."""
