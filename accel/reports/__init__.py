"""The figures of a run, and the reports made from them: text, JSON, Markdown, the profile page."""
