"""The verbs of the command line, a file each or a few that belong together; ``cli`` only wires them."""
