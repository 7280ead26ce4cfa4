"""One module for each tool: text of its report in, `Reported` out."""
