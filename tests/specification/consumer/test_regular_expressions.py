"""Regular expressions mean what RE2/J makes of them. The messages are those of RE2/J 1.8, which Kafka 4.2.0 uses."""

import pytest

from coordinator_model.specification.consumer import regular_expressions

NAMES = ["a", "b", "ab", "abc", "a.b", "x-1", "xa", "c_d", "A", "a{,2}", "]", "orders.eu", "orders.us", "1"]


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("a", ["a"]),
        ("", []),
        ("a|b", ["a", "b"]),
        ("a|", ["a"]),
        ("[ab]", ["a", "b"]),
        ("[a-c]+", ["a", "ab", "abc", "b"]),
        ("[a-a]", ["a"]),
        ("[]a]", ["]", "a"]),
        ("[^a-z]", ["1", "A", "]"]),
        (r"[\w-]+", ["1", "A", "a", "ab", "abc", "b", "c_d", "x-1", "xa"]),
        (r"[a\-x1]+", ["1", "a", "x-1", "xa"]),
        (r"[-x1]+", ["1", "x-1"]),
        (r"[\d\tA]", ["1", "A"]),
        (r"orders\..*", ["orders.eu", "orders.us"]),
        (r"orders\.(eu|us)", ["orders.eu", "orders.us"]),
        (r"(?:a|x)(?P<second>b|a)?", ["a", "ab", "xa"]),
        (r"(?<first>a)b{1}c{0,1}", ["ab", "abc"]),
        (r"(?:a)(?:b)", ["ab"]),
        ("ab{1,}c?", ["ab", "abc"]),
        ("a{1000}", []),
        ("a{1,1000}", ["a"]),
        ("a.*?", ["a", "a.b", "ab", "abc", "a{,2}"]),
        ("a{,2}", ["a{,2}"]),
        ("^a$", ["a"]),
        (r"\Aa\z", ["a"]),
        (r"^*a", ["a"]),
        (r"\ba\b.\bb", ["a.b"]),
        (r"a\b.*", ["a", "a.b", "a{,2}"]),
        (r"a\Bb", ["ab"]),
        (r"\D", ["A", "]", "a", "b"]),
        (r"\w", ["1", "A", "a", "b"]),
        (r"\t|a", ["a"]),
        (r"c\_d", ["c_d"]),
    ],
)
def test_an_expression_matches_whole_names(expression, names):
    assert regular_expressions.matching_names(expression, NAMES) == tuple(names)


@pytest.mark.parametrize(
    ("expression", "names"),
    [("a{2}", ["aa"]), ("a{2,}", ["aa", "aaa"]), ("a{1,2}", ["a", "aa"]), ("a{0}", [""]), ("a{0,}", ["", "a", "aa", "aaa"])],
)
def test_a_repetition_counts(expression, names):
    assert regular_expressions.matching_names(expression, ["", "a", "aa", "aaa"]) == tuple(names)


def test_an_escaped_control_character_is_that_character():
    assert regular_expressions.matching_names(r"\t", ["", "t", "\t"]) == ("\t",)


PROBLEMS = {
    "missing closing )": ["(", "(a|b"],
    "regexp/syntax: internal error": [")", "a)"],
    "missing closing ]": ["[", "[a-", "[]"],
    "invalid character class range": ["[b-a]"],
    "invalid escape sequence": [r"[a-\d]", r"\q", r"\é"],
    "missing argument to repetition operator": ["*", "a|*", "(+a)", "{2}"],
    "invalid nested repetition operator": ["a**", "a+?{2}"],
    "invalid repeat count": ["a{3,1}", "[ab]{3,1}", "a{1001}", "a{1,1001}"],
    "trailing backslash at end of expression": ["a\\", "[\\"],
    "duplicate capture group name": ["(?P<n>a)(?P<n>b)"],
    "invalid named capture": ["(?P<>a)", "(?<n"],
}


@pytest.mark.parametrize(("expression", "problem"), [(one, problem) for problem, broken in PROBLEMS.items() for one in broken])
def test_a_broken_expression_is_refused_in_the_words_of_re2j(expression, problem):
    with pytest.raises(regular_expressions.InvalidExpressionError) as caught:
        regular_expressions.translated(expression)
    assert str(caught.value) == problem


@pytest.mark.parametrize("expression", ["(?i)a", r"\pL", r"\Qa\E", r"\1", r"\x41", "[[:alpha:]]", r"[\D]", "(?=a)"])
def test_what_python_might_read_otherwise_is_not_guessed(expression):
    with pytest.raises(regular_expressions.UnsupportedExpressionError):
        regular_expressions.translated(expression)
