"""The figures of a run, and the reports made from them.

ledger     what happened to each target, and to the run, counted where it happens
timeline   rare events, and single calls while a profile is made
figures    the ledgers as plain dicts, with sums: the JSON report
words      figures as people read them; columns and groups that the views share
summary    the summary line, and the heading of a report
text, markdown, profiling   views: text, Markdown, the profile page
reporting  `accel.report`
"""
