"""How large the result of each function is, told from what it is given: each is in one of four classes.

It is bounded by its arguments: small whatever they are, or as large as the largest of them. Or it adds them up, or is
a number of times as large, or is quadratic: something is written once for each element of something else. A function
that is in no class may not be used, which a test holds.
"""

_FIXED = """
count count_if sum avg mean every bool_and bool_or approx_count_distinct stddev std stddev_pop stddev_samp variance
var_pop var_samp covar_pop covar_samp corr skewness kurtosis regr_slope regr_intercept regr_r2 regr_count regr_avgx
regr_avgy regr_sxx regr_syy regr_sxy bit_and bit_or bit_xor try_sum try_avg grouping grouping_id row_number rank
dense_rank percent_rank ntile cume_dist abs sign signum ceil ceiling floor round bround trunc sqrt cbrt exp expm1 ln log
log10 log1p log2 pow power pi e mod pmod negative positive sin cos tan cot asin acos atan atan2 sinh cosh tanh degrees
radians hypot rint factorial width_bucket bin conv rand randn random uniform isnan nanvl try_add try_subtract
try_multiply try_divide try_mod try_to_number to_number bit_count bit_length getbit shiftleft shiftright
shiftrightunsigned div between isnull isnotnull equal_null length len char_length character_length octet_length instr
locate position contains startswith endswith like ilike rlike regexp regexp_like regexp_count regexp_instr ascii char
chr levenshtein soundex find_in_set md5 sha sha1 sha2 crc32 hash xxhash64 is_valid_utf8 bigint int smallint tinyint
double float boolean date timestamp decimal date_trunc date_part datepart extract date_add dateadd date_sub date_diff
datediff add_months months_between last_day next_day year quarter month weekofyear weekday day dayofmonth dayofweek
dayofyear dayname monthname hour minute second to_date try_to_date to_timestamp try_to_timestamp unix_timestamp
to_unix_timestamp unix_millis unix_micros unix_seconds unix_date timestamp_seconds timestamp_millis timestamp_micros
make_date make_timestamp make_interval make_dt_interval make_ym_interval date_from_unix_date now current_timestamp
current_date curdate localtimestamp from_utc_timestamp to_utc_timestamp convert_timezone window window_time
session_window json_array_length is_variant_null array_contains array_position array_size arrays_overlap cardinality
size exists forall map_contains_key
"""
FIXED = frozenset(_FIXED.split())
"""Those whose result is small, however large what they are given is."""

OF_A_VALUE = 8
"""A value in an array counts as so many characters where it becomes text, and what stands around it, too."""

_LARGEST = """
min max min_by max_by any any_value some first first_value last last_value median mode percentile percentile_cont
percentile_disc approx_percentile percentile_approx collect_list collect_set histogram_numeric lag lead nth_value
greatest least unhex if ifnull nvl nvl2 nullif nullifzero zeroifnull coalesce lower lcase upper ucase substr substring
substring_index left right split split_part trim ltrim rtrim btrim reverse initcap regexp_extract
regexp_substr unbase64 try_to_binary elt url_decode try_url_decode parse_url try_parse_url str_to_map
binary get_json_object json_object_keys parse_json try_parse_json array_distinct array_except
array_intersect array_max array_min array_remove array_sort sort_array array_compact slice element_at try_element_at
get flatten filter shuffle map_entries map_filter map_from_entries map_keys map_values array_agg explode explode_outer
posexplode posexplode_outer inline inline_outer variant_explode variant_explode_outer range
"""
LARGEST = frozenset(_LARGEST.split())
"""Those whose result is as large as the largest of what they are given: a part of it, or the same in another order or
case: a letter counts as the largest that it is in either case."""

_ADDING = """
concat overlay array array_append array_prepend array_union map map_concat map_from_arrays arrays_zip struct
named_struct from_csv
"""
ADDING = frozenset(_ADDING.split())
"""Those whose result is as large as all that they are given."""

GROWING = {
    "hex": 2,
    "base64": 2,
    "decode": 2,
    "make_valid_utf8": 3,
    "url_encode": 3,
    "encode": 4,
    "to_json": 6,
    "to_variant_object": 6,
    "date_format": 8,
    "from_unixtime": 8,
    "schema_of_json": 8,
    "schema_of_variant": 8,
    "schema_of_variant_agg": 8,
    "typeof": 8,
}
"""How many times as large as what it is given the result of a function may be."""

CASTING = frozenset({"string"})
"""Those that write a value as text, also an array of small ones."""

PLAIN_KINDS = frozenset({"Literal", "SemiStructuredExtract"})
"""What is no array of small values where it is cast to text."""

FOR_EACH = frozenset({"json_tuple"})
"""Those that give what they are given once for each of their arguments."""

MAKING = frozenset({"transform", "zip_with", "transform_keys", "transform_values", "map_zip_with"})
"""Those that keep what a lambda function makes of each element."""

ACCUMULATING = frozenset({"aggregate", "reduce"})
"""Those whose lambda function is given what it made before, once for each element."""

WRITTEN_IN: dict[str, tuple[tuple[int, ...], range]] = {
    "replace": ((2,), range(1)),
    "regexp_replace": ((2,), range(1)),
    "array_join": ((1, 2), range(1)),
    "concat_ws": ((0,), range(1, 5_000)),
    "listagg": ((1,), range(1)),
    "string_agg": ((1,), range(1)),
}
"""Those that write texts at many places: which arguments these are, and those that they are written into."""

MATCHING = {"regexp_replace": 1, "regexp_extract_all": 1}
"""Those that give of each match what is in it, and which argument the pattern is: matches that look ahead overlap."""

READ_AS = {"from_json": 1, "variant_get": 2, "try_variant_get": 2}
"""Those that make a value of a type, and which argument its text is: each element of an array has all its fields."""

TRANSLATING = frozenset({"translate"})
"""Those that write one letter for another, which may be larger."""

LARGEST_LETTER = 6
"""What the largest letter counts as: upper case of ``ΐ`` are three of two bytes."""

QUADRATIC = MAKING | ACCUMULATING | WRITTEN_IN.keys() | MATCHING.keys() | READ_AS.keys()
"""Those whose result may be as large as what they are given, times what they are given."""

CLASSES = (FIXED | LARGEST, ADDING, GROWING.keys() | FOR_EACH | CASTING | TRANSLATING, QUADRATIC)

COLLECTING = frozenset(
    {
        *("collect_list", "collect_set", "array_agg", "listagg", "string_agg", "histogram_numeric"),
        "schema_of_variant_agg",
    }
)
"""Those that make one value of the rows of a group."""

KEEPING = COLLECTING | {"percentile", "percentile_cont", "percentile_disc", "median", "mode"}
"""Those that keep the rows of a group, or what is different in them, at once."""

OF_ALL_ROWS = KEEPING | {"count", "count_if", "sum", "avg", "mean", "min", "max", "approx_count_distinct"}
"""Those that make one row of all where nothing is grouped; more do."""

_FIXED_KINDS = """
And Or Not EqualTo EqualNullSafe GreaterThan GreaterThanOrEqual LessThan LessThanOrEqual Between Like ILike LikeAll
LikeAny NotLikeAll NotLikeAny ILikeAll ILikeAny NotILikeAll NotILikeAny RLike In InSubquery Exists IsNull IsNotNull
IsUnknown IsNotUnknown Add Subtract Multiply Divide Remainder IntegralDivide UnaryMinus UnaryPositive BitwiseAnd
BitwiseOr BitwiseXor BitwiseNot ShiftLeft ShiftRight ShiftRightUnsigned StringLocate TimestampAdd TimestampDiff
CurrentDate CurrentTimestamp LocalTimestamp Now
"""
FIXED_KINDS = frozenset(_FIXED_KINDS.split())
ADDING_KINDS = frozenset({"Concat", "Overlay", "CreateNamedStruct"})
"""What the parser makes nodes of their own of, as ``FIXED`` and ``ADDING``."""
