"""Drafting contracts from an OpenAPI 3 document. What the document cannot know is left blank, and the draft refused."""
