"""The account of a run, and its views: text, JSON, Markdown, the profile page."""
