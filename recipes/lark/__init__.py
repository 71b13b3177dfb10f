"""The recipe of the embedded voice `lark`."""
