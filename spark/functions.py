"""The functions that a query may use: those of Spark that compute from their arguments, and from nothing else.

Left out, each for its reason: what reads files or names them (``input_file_name``, ``from_avro``,
``from_protobuf``, ``read_files``), runs other code (``java_method``, ``reflect``, ``transform`` with a script),
tells of the machine or the session (``version``, ``current_user``, ``current_catalog``), fetches or parses XML,
and makes far more out of little (``repeat``, ``space``, ``lpad``, ``sequence``, ``array_repeat``, ``array_insert``,
``stack``, ``format_string``): the heap is shared with the jobs of the history.
"""

_ALLOWED = """
count count_if sum avg mean min max min_by max_by any any_value some every bool_and bool_or first
first_value last last_value median mode percentile percentile_cont percentile_disc approx_percentile
percentile_approx approx_count_distinct stddev std stddev_pop stddev_samp variance var_pop var_samp
covar_pop covar_samp corr skewness kurtosis regr_slope regr_intercept regr_r2 regr_count regr_avgx
regr_avgy regr_sxx regr_syy regr_sxy collect_list collect_set array_agg listagg string_agg
histogram_numeric bit_and bit_or bit_xor try_sum try_avg grouping grouping_id row_number rank
dense_rank percent_rank ntile lag lead nth_value cume_dist abs sign signum ceil ceiling floor round bround
trunc sqrt cbrt exp expm1 ln log log10 log1p log2 pow power pi e mod pmod negative positive greatest least
sin cos tan cot asin acos atan atan2 sinh cosh tanh degrees radians hypot rint factorial width_bucket bin
hex unhex conv rand randn random uniform isnan nanvl try_add try_subtract try_multiply try_divide try_mod
try_to_number to_number bit_count bit_length getbit shiftleft shiftright shiftrightunsigned div if between
ifnull nvl nvl2 nullif nullifzero zeroifnull coalesce isnull isnotnull equal_null typeof lower lcase upper
ucase length len char_length character_length octet_length substr substring substring_index left right
concat concat_ws split split_part trim ltrim rtrim btrim replace translate reverse initcap instr locate
position contains startswith endswith like ilike rlike regexp regexp_like regexp_extract
regexp_extract_all regexp_replace regexp_count regexp_instr regexp_substr ascii char chr overlay
levenshtein soundex base64 unbase64 try_to_binary decode encode elt find_in_set md5 sha sha1 sha2 crc32
hash xxhash64 url_decode try_url_decode url_encode parse_url try_parse_url str_to_map is_valid_utf8
make_valid_utf8 string bigint int smallint tinyint double float boolean date timestamp decimal binary
date_trunc date_part datepart extract date_format date_add dateadd date_sub date_diff datediff add_months
months_between last_day next_day year quarter month weekofyear weekday day dayofmonth dayofweek
dayofyear dayname monthname hour minute second to_date try_to_date to_timestamp try_to_timestamp
unix_timestamp to_unix_timestamp from_unixtime unix_millis unix_micros unix_seconds unix_date
timestamp_seconds timestamp_millis timestamp_micros make_date make_timestamp make_interval
make_dt_interval make_ym_interval date_from_unix_date now current_timestamp current_date curdate
localtimestamp from_utc_timestamp to_utc_timestamp convert_timezone window
window_time session_window get_json_object json_tuple from_json to_json schema_of_json json_array_length
json_object_keys parse_json try_parse_json variant_get try_variant_get is_variant_null schema_of_variant
to_variant_object schema_of_variant_agg from_csv array array_contains array_distinct array_except
array_intersect array_union array_join array_max array_min array_position array_remove array_size
array_sort sort_array array_append array_prepend array_compact arrays_overlap arrays_zip
cardinality size slice element_at try_element_at get flatten exists forall filter aggregate reduce
transform zip_with shuffle map map_concat map_contains_key map_entries map_filter map_from_arrays
map_from_entries map_keys map_values map_zip_with transform_keys transform_values struct named_struct
explode explode_outer posexplode posexplode_outer inline inline_outer
"""
ALLOWED = frozenset(_ALLOWED.split())

MOST_ARGUMENTS = {"approx_count_distinct": 1, "range": 4, "window": 2}
"""Those that take no more arguments, or fewer than in Spark: the next would be an error so small that Spark reads and
writes beyond its memory, or the slide of a window, of which a second may be in a million at once."""

MOST_PARTITIONS = 10_000
"""Of a ``range``, its fourth argument: each is held in memory. In many small ones it leaves room for other work."""

MOST_ACCURATE = 10_000
"""The accuracy of ``approx_percentile``, its third argument, and the default: it may keep as many rows of a group."""

APPROXIMATE = frozenset({"approx_percentile", "percentile_approx"})

TYPES = {"from_json": 1, "from_csv": 1, "variant_get": 2, "try_variant_get": 2}
"""Those that take the text of a type, and which argument it is. As JSON it may name a class, which Spark makes."""

OPTIONS = {"from_json": 2, "from_csv": 2, "to_json": 1, "schema_of_json": 1}
"""Those that take options, and which argument they are."""

_NAMES_OF_OPTIONS = """
mode columnNameOfCorruptRecord locale timeZone dateFormat timestampFormat timestampNTZFormat timeFormat
primitivesAsString prefersDecimal allowComments allowUnquotedFieldNames allowSingleQuotes
allowNumericLeadingZeros allowNonNumericNumbers allowBackslashEscapingAnyCharacter
allowUnquotedControlChars dropFieldIfAllNull inferTimestamp ignoreNullFields pretty sortKeys
writeNonAsciiCharacterAsCodePoint sep delimiter quote escape charToEscapeQuoteEscaping
unescapedQuoteHandling comment nullValue emptyValue nanValue positiveInf negativeInf
ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace
"""
NAMES_OF_OPTIONS = frozenset(_NAMES_OF_OPTIONS.lower().split())
"""The options that may be given, in small letters; left out is what names a class (``compression``, ``codec``), sets
buffers, or is for files."""

_TABLES = """
explode explode_outer posexplode posexplode_outer inline inline_outer json_tuple variant_explode
variant_explode_outer range
"""
TABLES = frozenset(_TABLES.split())
"""The functions that may stand where a table stands."""
