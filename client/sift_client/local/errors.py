"""What can be wrong with a template, from the point of view of the local stack."""


class TemplateError(Exception):
    """The template asks for something that cannot be run here; the message names the place and the reason."""
