"""The files of the dashboard's page and the tools that check them. hub/api serves the files."""
