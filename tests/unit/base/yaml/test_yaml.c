/* What YAML texts mean as JSON, and which are refused; the answers are those of sigs.k8s.io/yaml.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/yaml/yaml.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* A text and what it means as JSON, members sorted, or why it is refused. */
struct row {
    const char *text;
    const char *want;
};

static void write_json(struct td_arena *arena, struct td_json *node, struct td_buf *out)
{
    td_json_sort(arena, node);
    td_json_write(node, &(struct td_json_format){.escape_html = true}, out);
}

/* The documents of `text` as JSON, one a line; an empty stream is "null", as the library has it. */
static void expect_json(const char *text, const char *want)
{
    td_auto_arena arena;
    td_auto_buf out;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    td_buf_init(&out, TD_YAML_BYTES_MAX);
    struct td_yaml_documents documents;
    struct td_error err = TD_ERROR_INIT;
    int code = td_yaml_parse(&arena, td_str_from(text), &documents, &err);
    if (code < 0) {
        fail_msg("'%s': %s", text, err.message);
    }
    for (size_t i = 0; i < documents.count; i++) {
        (void)td_buf_append(&out, i > 0 ? TD_STR("\n") : TD_STR_EMPTY);
        write_json(&arena, documents.items[i], &out);
    }
    const char *got = documents.count > 0 ? out.ptr : "null";
    if (strcmp(got, want) != 0) {
        fail_msg("'%s': got %s, want %s", text, got, want);
    }
}

static void expect_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        expect_json(rows[i].text, rows[i].want);
    }
}

static void expect_refusals(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        td_auto_arena arena;
        td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
        struct td_yaml_documents documents = {.count = 77};
        struct td_error err = TD_ERROR_INIT;
        int code = td_yaml_parse(&arena, td_str_from(rows[i].text), &documents, &err);
        if (code != TD_INVALID || strcmp(err.message, rows[i].want) != 0) {
            fail_msg("'%s': code %d, got %s, want %s", rows[i].text, code, err.message,
                     rows[i].want);
        }
        assert_int_equal(documents.count, 77);
    }
}

/* YAML 1.1 words are booleans and null in exactly three spellings each. */
static void test_yaml_reads_words(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"[y, Y, yes, Yes, YES, yEs]", "[true,true,true,true,true,\"yEs\"]"},
        {"[on, On, ON, oN]", "[true,true,true,\"oN\"]"},
        {"[true, True, TRUE, tRUE]", "[true,true,true,\"tRUE\"]"},
        {"[n, N, no, No, NO, nO]", "[false,false,false,false,false,\"nO\"]"},
        {"[off, Off, OFF, oFF]", "[false,false,false,\"oFF\"]"},
        {"[false, False, FALSE, fALSE]", "[false,false,false,\"fALSE\"]"},
        {"[~, null, Null, NULL, nULL, ~~]", "[null,null,null,null,\"nULL\",\"~~\"]"},
        {"[]", "[]"},
        {"a:", "{\"a\":null}"},
        {"- \n- ", "[null,null]"},
        {"k: # comment only", "{\"k\":null}"},
        {"[y es, nope, offer, trues, nulls]", "[\"y es\",\"nope\",\"offer\",\"trues\",\"nulls\"]"},
        {"enabled: on\nkind: Deployment", "{\"enabled\":true,\"kind\":\"Deployment\"}"},
    };
    expect_rows(rows, COUNT(rows));
}

/* Whole numbers of every base up to 64 bits are kept exactly. */
static void test_yaml_reads_integers(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"[0, -0, +0, 00, 1, +1, -1]", "[0,0,0,0,1,1,-1]"},
        {"[1_000, 1__0, 1_, -_1, +1_2]", "[1000,10,1,-1,12]"},
        {"_1", "\"_1\""},
        {"[0x1F, 0X1f, -0x1F, +0x1F, 0x_1]", "[31,31,-31,31,1]"},
        {"[0x, 0xG, 0_x1F]", "[\"0x\",\"0xG\",31]"},
        {"[0b11, 0B11, -0b11, +0b11, 0b_11]", "[3,3,-3,3,3]"},
        {"[0b, 0b2, 0b+1, 0b-1, -0b-1]", "[\"0b\",\"0b2\",1,-1,\"-0b-1\"]"},
        {"[0o17, 0O17, -0o17]", "[15,15,-15]"},
        {"[0o8, 0o]", "[\"0o8\",\"0o\"]"},
        {"[017, -017, 0_7]", "[15,-15,7]"},
        {"[08, 09, -08, 018, 0_8, 08.5]", "[8,9,-8,18,8,8.5]"},
        {"9223372036854775807", "9223372036854775807"},
        {"9223372036854775808", "9223372036854775808"},
        {"18446744073709551615", "18446744073709551615"},
        {"18446744073709551616", "18446744073709552000"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"-9223372036854775809", "-9223372036854776000"},
        {"+9223372036854775808", "9223372036854776000"},
        {"123456789012345678901234567890", "1.2345678901234568e+29"},
        {"[0xFFFFFFFFFFFFFFFF, 0x10000000000000000]",
         "[18446744073709551615,\"0x10000000000000000\"]"},
        {"[-0x8000000000000000, -0x8000000000000001]",
         "[-9223372036854775808,\"-0x8000000000000001\"]"},
        {"0b1111111111111111111111111111111111111111111111111111111111111111",
         "18446744073709551615"},
        {"[+-1, --1, ++1, -, +, 1-1]", "[\"+-1\",\"--1\",\"++1\",\"-\",\"+\",\"1-1\"]"},
    };
    expect_rows(rows, COUNT(rows));
}

/* Floats are written as Go writes them and stay strings when they overflow. */
static void test_yaml_reads_floats(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"[.5, 1., -.5, +.5, +1., 5.5_5]", "[0.5,1,-0.5,0.5,1,5.55]"},
        {"[1e3, 1E3, 1e+3, 1e-3, .5e3, 1.e3]", "[1000,1000,1000,0.001,500,1000]"},
        {"[e3, 1e, 1e+, 1e3e, .e3, 1e3.5]", "[\"e3\",\"1e\",\"1e+\",\"1e3e\",\".e3\",\"1e3.5\"]"},
        {"[., .., -., +.]", "[\".\",\"..\",\"-.\",\"+.\"]"},
        {"[.5_0, .5__0, ._5, .5_]", "[0.5,\".5__0\",\"._5\",\".5_\"]"},
        {"[1e21, 1e20, 1e-6, 1e-7, 0.0000001]", "[1e+21,100000000000000000000,0.000001,1e-7,1e-7]"},
        {"[1e308, 1e309, -1e309, 1.7976931348623157e308, 1.7976931348623159e308]",
         "[1e+308,\"1e309\",\"-1e309\",1.7976931348623157e+308,\"1.7976931348623159e308\"]"},
        {"[5e-324, 1e-400, -1e-400, -0.0]", "[5e-324,0,-0,-0]"},
        {"[0.1, 1.10, 3.14159265358979323846]", "[0.1,1.1,3.141592653589793]"},
        {"[0.30, 100.0, 1000000000000000000000]", "[0.3,100,1e+21]"},
        {"[nan, inf, Infinity, NaN, +Inf, .Nan, .iNf]",
         "[\"nan\",\"inf\",\"Infinity\",\"NaN\",\"+Inf\",\".Nan\",\".iNf\"]"},
        {"[0x1.8p3, 1p3, 1.2.3, v1, 1.0.0]", "[\"0x1.8p3\",\"1p3\",\"1.2.3\",\"v1\",\"1.0.0\"]"},
        {"[1m, 500Mi, 1Ki, 100m, 50%, 1e3m]",
         "[\"1m\",\"500Mi\",\"1Ki\",\"100m\",\"50%\",\"1e3m\"]"},
    };
    expect_rows(rows, COUNT(rows));
}

/* What looks like a number, a date or a word to others stays a string. */
static void test_yaml_reads_strings(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"[1:30, 1:30:45, 12:30:45.5]", "[\"1:30\",\"1:30:45\",\"12:30:45.5\"]"},
        {"[2001-12-14, 2001-12-14T21:59:43.10-05:00, 2001-1-1]",
         "[\"2001-12-14\",\"2001-12-14T21:59:43.10-05:00\",\"2001-1-1\"]"},
        {"2001-12-14 21:59:43.10", "\"2001-12-14 21:59:43.10\""},
        {"[=, <<]", "[\"=\",\"\\u003c\\u003c\"]"},
        {"['1', \"1\", 'true', \"null\", '', \"\"]", "[\"1\",\"1\",\"true\",\"null\",\"\",\"\"]"},
        {"['it''s', \"tab\\tbell\\a\", \"\\x41\\u00e9\\U0001F600\"]",
         "[\"it's\",\"tab\\tbell\\u0007\",\"A\303\251\360\237\230\200\"]"},
        {"\"\\N\\_\\L\\P\\e\\0\"", "\"\302\205\302\240\\u2028\\u2029\\u001b\\u0000\""},
        {"\"a\\\n   b\"", "\"ab\""},
        {"\"a\n   b\n\n   c\"", "\"a b\\nc\""},
        {"'a\n   b\n\n   c'", "\"a b\\nc\""},
        {"plain text\n  on two lines", "\"plain text on two lines\""},
        {"a#b", "\"a#b\""},
        {"a #b", "\"a\""},
        {"http://example.com:80/x", "\"http://example.com:80/x\""},
        {"a: b:c", "{\"a\":\"b:c\"}"},
        {"{a: b:c, d:e: f}", "{\"a\":\"b:c\",\"d:e\":\"f\"}"},
        {"[a b, c:d]", "[\"a b\",\"c:d\"]"},
        {"- -1\n- -a\n- --", "[-1,\"-a\",\"--\"]"},
        {"\"<b>&amp;\"", "\"\\u003cb\\u003e\\u0026amp;\""},
        {"key: \303\251 \342\230\203 \360\237\230\200",
         "{\"key\":\"\303\251 \342\230\203 \360\237\230\200\"}"},
        {"\"a\\u2028b\"", "\"a\\u2028b\""},
        {"a\tb: c\td", "{\"a\\tb\":\"c\\td\"}"},
        {"? a\n: b\n c", "{\"a\":\"b c\"}"},
    };
    expect_rows(rows, COUNT(rows));
}

/* Tags turn scalars into what they name, or refuse them. */
static void test_yaml_reads_tags(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"!!str 123", "\"123\""},
        {"!!str", "\"\""},
        {"!!str ~", "\"~\""},
        {"! 12", "\"12\""},
        {"! 'x'", "\"x\""},
        {"!", "\"\""},
        {"!!int \"3\"", "3"},
        {"!!int 0x10", "16"},
        {"!!float 1", "1"},
        {"!!float \"1e3\"", "1000"},
        {"!!bool \"yes\"", "true"},
        {"!!null ''", "null"},
        {"!!null ~", "null"},
        {"!foo 12", "\"12\""},
        {"!foo bar", "\"bar\""},
        {"!!timestamp 2001-12-14", "\"2001-12-14\""},
        {"!!timestamp \"2000-2-29\"", "\"2000-2-29\""},
        {"!!timestamp 2001-12-14t1:2:3Z", "\"2001-12-14t1:2:3Z\""},
        {"!!timestamp 2001-12-14T1:2:3,5+24:60", "\"2001-12-14T1:2:3,5+24:60\""},
        {"!!timestamp 2001-12-14   1:2:3", "\"2001-12-14   1:2:3\""},
        {"!!binary QUJD", "\"ABC\""},
        {"!!binary \"QUJDRA==\"", "\"ABCD\""},
        {"!!binary \"Q\\nQ==\"", "\"A\""},
        {"!!binary gIGC4oKs", "\"\357\277\275\357\277\275\357\277\275\342\202\254\""},
        {"!!binary ''", "\"\""},
        {"!!map {a: 1}", "{\"a\":1}"},
        {"!!set {a, b}", "{\"a\":null,\"b\":null}"},
        {"!!omap [a: 1]", "[{\"a\":1}]"},
        {"!!int [1]", "[1]"},
        {"!<tag:yaml.org,2002:int> 7", "7"},
        {"%TAG !e! tag:yaml.org,2002:\n---\n!e!int 7", "7"},
        {"!!merge x", "\"x\""},
    };
    expect_rows(rows, COUNT(rows));
}

/* A tag that its text does not fit is refused. */
static void test_yaml_refuses_tag_mismatches(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"!!int 3.0", "line 1: '3.0' is a !!float and not a !!int"},
        {"!!int yes", "line 1: 'yes' is a !!bool and not a !!int"},
        {"!!int ''", "line 1: '' is a !!null and not a !!int"},
        {"!!int 2001-01-01", "line 1: '2001-01-01' is a !!str and not a !!int"},
        {"!!bool 1", "line 1: '1' is a !!int and not a !!bool"},
        {"!!bool maybe", "line 1: 'maybe' is a !!str and not a !!bool"},
        {"!!float x", "line 1: 'x' is a !!str and not a !!float"},
        {"!!float 18446744073709551615",
         "line 1: '18446744073709551615' is a !!int and not a !!float"},
        {"!!null x", "line 1: 'x' is a !!str and not a !!null"},
        {"!!timestamp 5", "line 1: '5' is a !!int and not a !!timestamp"},
        {"!!timestamp 2001-2-29", "line 1: '2001-2-29' is a !!str and not a !!timestamp"},
        {"!!timestamp 2001-12-14T24:00:00Z",
         "line 1: '2001-12-14T24:00:00Z' is a !!str and not a !!timestamp"},
        {"!!timestamp 2001-12-14T1:2:3",
         "line 1: '2001-12-14T1:2:3' is a !!str and not a !!timestamp"},
        {"!!timestamp 2001-12-14T1:2:3+25:00",
         "line 1: '2001-12-14T1:2:3+25:00' is a !!str and not a !!timestamp"},
        {"!!timestamp 2001-12-14 1:2:3Z",
         "line 1: '2001-12-14 1:2:3Z' is a !!str and not a !!timestamp"},
        {"!!binary 'no base64'", "line 1: !!binary value is not valid base64"},
        {"!!binary QQ", "line 1: !!binary value is not valid base64"},
        {"!!binary QQ==QQ==", "line 1: !!binary value is not valid base64"},
        {"!e!int 7", "line 1: found undefined tag handle"},
    };
    expect_refusals(rows, COUNT(rows));
}

/* Keys of every scalar type become the strings that the library makes. */
static void test_yaml_reads_keys(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{1: a, -5: b, 0x10: c, 017: d, 1_000: e}",
         "{\"-5\":\"b\",\"1\":\"a\",\"1000\":\"e\",\"15\":\"d\",\"16\":\"c\"}"},
        {"{yes: a, off: b}", "{\"false\":\"b\",\"true\":\"a\"}"},
        {"{'true': b, \"false\": c, 'on': d, \"off\": e}",
         "{\"false\":\"c\",\"off\":\"e\",\"on\":\"d\",\"true\":\"b\"}"},
        {"{1.5: a, 1e3: b, 1.0: c, 0.1: d}",
         "{\"0.1\":\"d\",\"1\":\"c\",\"1.5\":\"a\",\"1000\":\"b\"}"},
        {"{1234567.0: a, 123456.0: b, 1e6: c, 1e-5: d, 0.0001: e}",
         "{\"0.0001\":\"e\",\"1.234567e+06\":\"a\",\"123456\":\"b\",\"1e+06\":\"c\",\"1e-05\":"
         "\"d\"}"},
        {"{16777217.0: a, 0.1234567891: b, 3.4e39: c, 1e-50: d}",
         "{\".inf\":\"c\",\"0\":\"d\",\"0.12345679\":\"b\",\"1.6777216e+07\":\"a\"}"},
        {"{-0.0: a, -2.5: b}", "{\"-0\":\"a\",\"-2.5\":\"b\"}"},
        {"{.inf: a, -.inf: b, .nan: c}", "{\"-.inf\":\"b\",\".inf\":\"a\",\".nan\":\"c\"}"},
        {"{2001-12-14: a}", "{\"2001-12-14\":\"a\"}"},
        {"{'': a}", "{\"\":\"a\"}"},
        {"{? a : b, ? c}", "{\"a\":\"b\",\"c\":null}"},
        {"{a, b: }", "{\"a\":null,\"b\":null}"},
        {"? a\n: b\n? c", "{\"a\":\"b\",\"c\":null}"},
        {"{\"a\":1,\"b\":[2,{\"c\":null}]}", "{\"a\":1,\"b\":[2,{\"c\":null}]}"},
        {"!!str 1: a", "{\"1\":\"a\"}"},
        {"!!binary QUI=: a", "{\"AB\":\"a\"}"},
        {"'<<': a", "{\"\\u003c\\u003c\":\"a\"}"},
        {"{\"\\u00e9\": 1}", "{\"\303\251\":1}"},
    };
    expect_rows(rows, COUNT(rows));
}

/* Keys that have no name in JSON are refused. */
static void test_yaml_refuses_keys(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"null: a", "line 1: a key is null"},
        {"~: a", "line 1: a key is null"},
        {": a", "line 1: did not find expected key"},
        {"? \n: a", "line 1: a key is null"},
        {"!!null '': a", "line 1: a key is null"},
        {"{[a]: b}", "line 1: a key is a mapping or a list"},
        {"{{a: 1}: b}", "line 1: a key is a mapping or a list"},
        {"? - a\n: b", "line 1: a key is a mapping or a list"},
        {"? {}\n: b", "line 1: a key is a mapping or a list"},
        {"? a: 1\n: b", "line 1: a key is a mapping or a list"},
        {"18446744073709551615: a",
         "line 1: key 18446744073709551615 is larger than any whole number a key can be"},
        {"a: &x [1]\n*x : b", "line 2: a key is a mapping or a list"},
    };
    expect_refusals(rows, COUNT(rows));
}

/* A key that appears twice is refused, also after it became a string. */
static void test_yaml_refuses_duplicates(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a: 1\na: 2", "line 2: duplicate key 'a', first set in line 1"},
        {"a: 1\nb:\n  c: 1\n  d: 2\n  c: 3", "line 5: duplicate key 'c', first set in line 3"},
        {"{a: 1, a: 1}", "line 1: duplicate key 'a', first set in line 1"},
        {"1: a\n0x1: b", "line 2: duplicate key '1', first set in line 1"},
        {"yes: a\non: b", "line 2: duplicate key 'true', first set in line 1"},
        {"a:\na:", "line 2: duplicate key 'a', first set in line 1"},
        {"a: 1\n'a': 2", "line 2: duplicate key 'a', first set in line 1"},
        {"- a: 1\n  b: 2\n  a:\n    x: y", "line 3: duplicate key 'a', first set in line 1"},
        {"\"\\u0061\": 1\na: 2", "line 2: duplicate key 'a', first set in line 1"},
        {"a: &k x\nx: 1\n*k : 2", "line 3: duplicate key 'x', first set in line 2"},
    };
    expect_refusals(rows, COUNT(rows));
}

/* Keys that only become equal as strings are refused too, though the library keeps either. */
static void test_yaml_refuses_keys_equal_as_strings(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"1: a\n'1': b", "line 2: duplicate key '1', first set in line 1"},
        {"true: a\n'true': b", "line 2: duplicate key 'true', first set in line 1"},
        {"1.0: a\n1: b", "line 2: duplicate key '1', first set in line 1"},
    };
    expect_refusals(rows, COUNT(rows));
}

/* Literal and folded blocks keep and fold lines as YAML says. */
static void test_yaml_reads_blocks(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a: |\n  x\n  y\n", "{\"a\":\"x\\ny\\n\"}"},
        {"a: |-\n  x\n  y\n", "{\"a\":\"x\\ny\"}"},
        {"a: |+\n  x\n\n\nb: 1", "{\"a\":\"x\\n\\n\\n\",\"b\":1}"},
        {"a: >\n  x\n  y\n\n  z\n", "{\"a\":\"x y\\nz\\n\"}"},
        {"a: >-\n  x\n   y\n  z\n", "{\"a\":\"x\\n y\\nz\"}"},
        {"a: |2\n    x\n   y\n", "{\"a\":\"  x\\n y\\n\"}"},
        {"a: |\n\n  x\n", "{\"a\":\"\\nx\\n\"}"},
        {"a: |\nb: 1", "{\"a\":\"\",\"b\":1}"},
        {"- |\n  x\n- >\n  y\n", "[\"x\\n\",\"y\\n\"]"},
        {"|\n x\n  y\n", "\"x\\n y\\n\""},
        {"a: |  # comment\n  # text\n", "{\"a\":\"# text\\n\"}"},
        {"a: |1+\n  x\n \n", "{\"a\":\" x\\n\\n\"}"},
        {"a: |\n  yes\nb: >-\n  12\n", "{\"a\":\"yes\\n\",\"b\":\"12\"}"},
    };
    expect_rows(rows, COUNT(rows));
}

/* Nested collections in block and flow style. */
static void test_yaml_reads_collections(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a:\n- 1\n- 2\nb:\n  - 3\n", "{\"a\":[1,2],\"b\":[3]}"},
        {"- - 1\n  - 2\n- - 3\n", "[[1,2],[3]]"},
        {"-\n  a: 1\n  b: 2\n- c: 3\n", "[{\"a\":1,\"b\":2},{\"c\":3}]"},
        {"a: {b: [c, {d: e}], f: }\n", "{\"a\":{\"b\":[\"c\",{\"d\":\"e\"}],\"f\":null}}"},
        {"[a: 1, b: 2]", "[{\"a\":1},{\"b\":2}]"},
        {"[{}, [], '']", "[{},[],\"\"]"},
        {"{a: [\n1,\n2,\n], }", "{\"a\":[1,2]}"},
        {"a:   b   \nc:\td", "{\"a\":\"b\",\"c\":\"d\"}"},
        {"# c\na: 1 # d\n# e\n", "{\"a\":1}"},
        {"a: 1\r\nb:\r\n- x\r\n", "{\"a\":1,\"b\":[\"x\"]}"},
        {"\357\273\277a: 1", "{\"a\":1}"},
        {"a: 1\rb: 2", "{\"a\":1,\"b\":2}"},
        {"{\n\t\"a\": 1\n}", "{\"a\":1}"},
        {"- a\n-\n- b", "[\"a\",null,\"b\"]"},
        {"spec:\n  containers:\n  - name: web\n    ports: [{containerPort: 80}]\n    args:\n    - "
         "--flag=on\n    - \"1\"\n",
         "{\"spec\":{\"containers\":[{\"args\":[\"--flag=on\",\"1\"],\"name\":\"web\",\"ports\":[{"
         "\"containerPort\":80}]}]}}"},
    };
    expect_rows(rows, COUNT(rows));
}

/* Aliases are copies of what their anchor holds at that place. */
static void test_yaml_reads_aliases(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a: &x 1\nb: *x", "{\"a\":1,\"b\":1}"},
        {"a: &x yes\nb: *x\n*x : c", "{\"a\":true,\"b\":true,\"true\":\"c\"}"},
        {"a: &x [1, &y 2]\nb: [*x, *y]", "{\"a\":[1,2],\"b\":[[1,2],2]}"},
        {"&a x: *a", "{\"x\":\"x\"}"},
        {"[&a 1, *a, &a 2, *a]", "[1,1,2,2]"},
        {"&a [&a 1, *a]", "[1,1]"},
        {"a: &x\nb: *x", "{\"a\":null,\"b\":null}"},
        {"a: &x !!str 1\nb: *x", "{\"a\":\"1\",\"b\":\"1\"}"},
        {"a: &x {k: [1]}\nb: [*x, *x]\nc: *x",
         "{\"a\":{\"k\":[1]},\"b\":[{\"k\":[1]},{\"k\":[1]}],\"c\":{\"k\":[1]}}"},
        {"a: &x |\n  text\nb: *x", "{\"a\":\"text\\n\",\"b\":\"text\\n\"}"},
        {"- &a 1.0\n- {*a : *a}", "[1,{\"1\":1}]"},
        {"? &x k\n: v\n? l\n: *x", "{\"k\":\"v\",\"l\":\"k\"}"},
    };
    expect_rows(rows, COUNT(rows));
}

/* Merge keys bring members of other mappings. */
static void test_yaml_reads_merges(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a: &x {k: 1}\nb: {<<: *x, l: 2}", "{\"a\":{\"k\":1},\"b\":{\"k\":1,\"l\":2}}"},
        {"a: &x {k: 1}\nb: {l: 2, <<: *x}", "{\"a\":{\"k\":1},\"b\":{\"k\":1,\"l\":2}}"},
        {"a: &x {k: 1}\nc: &y {l: 2}\nb: {<<: [*x, *y], m: 3}",
         "{\"a\":{\"k\":1},\"b\":{\"k\":1,\"l\":2,\"m\":3},\"c\":{\"l\":2}}"},
        {"{<<: {k: 1}, l: 2}", "{\"k\":1,\"l\":2}"},
        {"{<<: [{k: 1}, {l: 2}]}", "{\"k\":1,\"l\":2}"},
        {"{<<: {k: 1, <<: {l: 2, <<: [{m: 3}]}}}", "{\"k\":1,\"l\":2,\"m\":3}"},
        {"{<<: {k: 1}, <<: {l: 2}}", "{\"k\":1,\"l\":2}"},
        {"{<<: {}}", "{}"},
        {"{<<: []}", "{}"},
        {"{<<: &x {k: 1}, l: *x}", "{\"k\":1,\"l\":{\"k\":1}}"},
        {"{<<: &x [{k: 1}, {l: 2}], m: *x}", "{\"k\":1,\"l\":2,\"m\":[{\"k\":1},{\"l\":2}]}"},
        {"{<<: [&x {k: 1}], l: *x}", "{\"k\":1,\"l\":{\"k\":1}}"},
        {"!!merge x: 1", "{\"x\":1}"},
        {"!!merge <<: {a: 1}", "{\"a\":1}"},
        {"! '<<': {a: 1}", "{\"a\":1}"},
        {"\"<<\": {a: 1}", "{\"\\u003c\\u003c\":{\"a\":1}}"},
        {"!!str <<: {a: 1}", "{\"\\u003c\\u003c\":{\"a\":1}}"},
        {"a: &m <<\n*m : {k: 1}", "{\"\\u003c\\u003c\":{\"k\":1},\"a\":\"\\u003c\\u003c\"}"},
        {"a: &x {k: &y {z: 1}}\nb: {<<: *x}\nc: *y",
         "{\"a\":{\"k\":{\"z\":1}},\"b\":{\"k\":{\"z\":1}},\"c\":{\"z\":1}}"},
    };
    expect_rows(rows, COUNT(rows));
}

/* Merges of anything but mappings, and those that set a key twice, are refused. */
static void test_yaml_refuses_merges(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{<<: 1}", "line 1: a merge key (<<) needs a mapping or a list of mappings"},
        {"{<<: }", "line 1: a merge key (<<) needs a mapping or a list of mappings"},
        {"{<<: [1]}", "line 1: a merge key (<<) needs a mapping or a list of mappings"},
        {"{<<: [[]]}", "line 1: a merge key (<<) needs a mapping or a list of mappings"},
        {"{<<: [{a: 1}, b]}", "line 1: a merge key (<<) needs a mapping or a list of mappings"},
        {"a: &x [{k: 1}]\nb: {<<: *x}",
         "line 2: a merge key (<<) needs a mapping or a list of mappings"},
        {"a: &x 1\nb: {<<: *x}", "line 2: a merge key (<<) needs a mapping or a list of mappings"},
        {"a: &x 1\nb: {<<: [*x]}",
         "line 2: a merge key (<<) needs a mapping or a list of mappings"},
        {"a: &x {k: 1}\nb:\n  <<: *x\n  k: 2", "line 4: duplicate key 'k', first set in line 1"},
        {"a: &x {k: 1}\nb:\n  k: 2\n  <<: *x", "line 4: duplicate key 'k', first set in line 3"},
        {"a: &x {k: 1}\nb: {<<: [*x, *x]}", "line 2: duplicate key 'k', first set in line 1"},
        {"{<<: {k: 1, k: 2}}", "line 1: duplicate key 'k', first set in line 1"},
        {"{<<: &x [1]}", "line 1: a merge key (<<) needs a mapping or a list of mappings"},
        {"{<<: &x [{a: 1}, [2]]}",
         "line 1: a merge key (<<) needs a mapping or a list of mappings"},
    };
    expect_refusals(rows, COUNT(rows));
}

/* Aliases without an anchor, and anchors that contain themselves, are refused. */
static void test_yaml_refuses_aliases(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"*a", "line 1: alias '*a' has no anchor before it"},
        {"a: *b", "line 1: alias '*b' has no anchor before it"},
        {"[*a, &a 1]", "line 1: alias '*a' has no anchor before it"},
        {"&a [*a]", "line 1: the value of anchor '&a' contains itself"},
        {"&a {b: *a}", "line 1: the value of anchor '&a' contains itself"},
        {"a: &x {b: {c: [*x]}}", "line 1: the value of anchor '&x' contains itself"},
        {"a: &x {<<: *x}", "line 1: the value of anchor '&x' contains itself"},
        {"a: &x {<<: [*x]}", "line 1: the value of anchor '&x' contains itself"},
    };
    expect_refusals(rows, COUNT(rows));
}

/* Numbers that JSON cannot hold are refused as values. */
static void test_yaml_refuses_infinite_numbers(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {".inf", "line 1: .inf cannot be written as a JSON number"},
        {"-.inf", "line 1: -.inf cannot be written as a JSON number"},
        {"[+.Inf]", "line 1: .inf cannot be written as a JSON number"},
        {"a: .NaN", "line 1: .nan cannot be written as a JSON number"},
        {"a: !!float .inf", "line 1: .inf cannot be written as a JSON number"},
        {"{a: &x .inf}", "line 1: .inf cannot be written as a JSON number"},
    };
    expect_refusals(rows, COUNT(rows));
}

/* Malformed texts are refused. */
static void test_yaml_refuses_syntax_errors(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a: b: c", "line 1: mapping values are not allowed in this context"},
        {"a:\n\tb: 1", "line 2: found character that cannot start any token"},
        {"\ta: 1", "line 1: found character that cannot start any token"},
        {"[1, 2", "line 2: did not find expected ',' or ']' (while parsing a flow sequence that "
                  "begins in line 1)"},
        {"{a: 1", "line 2: did not find expected ',' or '}' (while parsing a flow mapping that "
                  "begins in line 1)"},
        {"a: 'x", "line 1: found unexpected end of stream"},
        {"a: \"x", "line 1: found unexpected end of stream"},
        {"a: \"\\q\"", "line 1: found unknown escape character"},
        {"a: \"\\ud83d\"", "line 1: found invalid Unicode character escape code"},
        {"- a\nb: c", "line 2: did not find expected '-' indicator (while parsing a block "
                      "collection that begins in line 1)"},
        {"a: 1\n b: 2", "line 2: mapping values are not allowed in this context"},
        {"a: [1, 2]]", "line 1: did not find expected key"},
        {"@a", "line 1: found character that cannot start any token"},
        {"`a", "line 1: found character that cannot start any token"},
        {"%a", "line 1: found unknown directive name"},
        {"a: |x\n b", "line 1: did not find expected comment or line break"},
        {"a: &", "line 1: did not find expected alphabetic or numeric character"},
        {"a: *", "line 1: did not find expected alphabetic or numeric character"},
        {"a: !<x", "line 1: did not find the expected '>'"},
        {"a\nb: c", "line 2: mapping values are not allowed in this context"},
        {"[a?b]", "line 1: 'a?b' has a '?' between brackets: put it in quotes"},
        {"{a: x?y}", "line 1: 'x?y' has a '?' between brackets: put it in quotes"},
        {"[!a, b]", "line 1: a tag between brackets has no value: put '' after it"},
        {"{a: !!str , b: 1}", "line 1: a tag between brackets has no value: put '' after it"},
        {"[a, !x]", "line 1: did not find expected whitespace or line break"},
        {"%YAML 1.2\n---\na: 1", "line 1: %YAML 1.2 is not supported, only 1.1"},
        {"%YAML 2.0\n---\na: 1", "line 1: found incompatible YAML document"},
        {"%YAML 1.1\n%YAML 1.1\n---\na", "line 2: found duplicate %YAML directive"},
        {"a: \377", "line 1: invalid leading UTF-8 octet"},
        {"a: \001", "line 1: control characters are not allowed"},
        {"a: \303", "line 1: incomplete UTF-8 octet sequence"},
        {"a: \355\240\200", "line 1: invalid Unicode character"},
        {"a: 1\n---\nb: [", "line 4: did not find expected node content"},
        {"- - a\n - b", "line 2: did not find expected '-' indicator (while parsing a block "
                        "collection that begins in line 1)"},
        {"{a: 1}}", "line 1: did not find expected <document start>"},
        {"'a' 'b'", "line 1: did not find expected <document start>"},
        {"a: 'b' c", "line 1: did not find expected key"},
        {"a: |\n  \tx\n", "line 2: found a tab character where an indentation space is expected "
                          "(while scanning a block scalar that begins in line 1)"},
    };
    expect_refusals(rows, COUNT(rows));
}

/* A stream holds documents; empty ones are left out and anchors do not reach the next one. */
static void test_yaml_reads_documents(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", "null"},
        {"\n\n", "null"},
        {"# only\n# comments\n", "null"},
        {"---\n", "null"},
        {"---\n---\n...\n---\n", "null"},
        {"~", "null"},
        {"--- null\n--- ~\n--- ''\n", "\"\""},
        {"a: 1\n---\nb: 2\n", "{\"a\":1}\n{\"b\":2}"},
        {"---\na: 1\n---\n# nothing\n---\nb: 2\n...\n", "{\"a\":1}\n{\"b\":2}"},
        {"--- a\n--- [b]\n--- {c: d}\n", "\"a\"\n[\"b\"]\n{\"c\":\"d\"}"},
        {"a: 1\n...\n# end\n---\nb: 2", "{\"a\":1}\n{\"b\":2}"},
        {"a: |\n  ---\n  x\n--- b", "{\"a\":\"---\\nx\\n\"}\n\"b\""},
        {"---a: 1\n", "{\"---a\":1}"},
        {"{}\n---\n[]\n", "{}\n[]"},
        {"%YAML 1.1\n---\na: 1\n...\n%YAML 1.1\n---\nb: 2\n", "{\"a\":1}\n{\"b\":2}"},
        {"&a 1\n--- &a 2\n--- [&a 3, *a]\n", "1\n2\n[3,3]"},
    };
    expect_rows(rows, COUNT(rows));
    static const struct row refused[] = {
        {"&a 1\n---\n*a\n", "line 3: alias '*a' has no anchor before it"},
        {"a: 1\n---\nb: 1\nb: 2\n", "line 4: duplicate key 'b', first set in line 3"},
    };
    expect_refusals(refused, COUNT(refused));
}

/* Members keep the order of the text; merged ones stand where the merge key stood. */
static void test_yaml_keeps_member_order(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_auto_buf out;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    td_buf_init(&out, 4096);
    struct td_yaml_documents documents;
    td_str text = TD_STR("z: 1\na: &x {q: 1, b: 2}\nm: {w: 1, <<: *x, c: 2}\n");
    assert_int_equal(td_yaml_parse(&arena, text, &documents, NULL), TD_OK);
    td_json_write(documents.items[0], &(struct td_json_format){0}, &out);
    assert_string_equal(
        out.ptr, "{\"z\":1,\"a\":{\"q\":1,\"b\":2},\"m\":{\"w\":1,\"q\":1,\"b\":2,\"c\":2}}");
}

/* A member's line is that of its key, an item's that of its first character. */
static void test_yaml_knows_lines(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_yaml_documents documents;
    td_str text = TD_STR("# first\na: 1\nb:\n  c:\n  - x\n\n  - y: 2\n    z: |\n      text\n"
                         "---\n\n- 1\n");
    assert_int_equal(td_yaml_parse(&arena, text, &documents, NULL), TD_OK);
    assert_int_equal(documents.count, 2);
    const struct td_json *root = documents.items[0];
    assert_int_equal(root->line, 2);
    assert_int_equal(td_json_get(root, TD_STR("a"))->line, 2);
    assert_int_equal(td_json_get(root, TD_STR("b"))->line, 3);
    const struct td_json *list = td_json_get_path(root, "b.c");
    assert_int_equal(list->line, 4);
    assert_int_equal(td_json_first_child(list)->line, 5);
    assert_int_equal(td_json_last_child(list)->line, 7);
    assert_int_equal(td_json_get(td_json_last_child(list), TD_STR("z"))->line, 8);
    assert_int_equal(documents.items[1]->line, 12);
    assert_int_equal(td_json_first_child(documents.items[1])->line, 12);
}

/* The tree does not refer to the text, and an alias is a copy that can be changed alone. */
static void test_yaml_copies(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    char text[] = "a: &x {k: value}\nb: *x\nc: {<<: *x}\n";
    struct td_yaml_documents documents;
    td_str slice = {.ptr = text, .len = sizeof(text) - 1};
    assert_int_equal(td_yaml_parse(&arena, slice, &documents, NULL), TD_OK);
    memset(text, '#', sizeof(text));
    struct td_json *root = documents.items[0];
    td_json_set(&arena, td_json_get(root, TD_STR("a")), TD_STR("k"), td_json_new_null(&arena));
    td_str value = td_json_get_str(td_json_get(root, TD_STR("b")), TD_STR("k"), TD_STR_EMPTY);
    assert_true(td_str_equal(value, TD_STR("value")));
    value = td_json_get_str(td_json_get(root, TD_STR("c")), TD_STR("k"), TD_STR_EMPTY);
    assert_true(td_str_equal(value, TD_STR("value")));
}

/* UTF-16 with a byte order mark is read as the library reads it. */
static void test_yaml_reads_utf16(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_yaml_documents documents;
    td_str text = TD_STR("\377\376a\0:\0 \0\351\0\n\0");
    assert_int_equal(td_yaml_parse(&arena, text, &documents, NULL), TD_OK);
    td_str value = td_json_get_str(documents.items[0], TD_STR("a"), TD_STR_EMPTY);
    assert_true(td_str_equal(value, TD_STR("\303\251")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_reads_words),
        cmocka_unit_test(test_yaml_reads_integers),
        cmocka_unit_test(test_yaml_reads_floats),
        cmocka_unit_test(test_yaml_reads_strings),
        cmocka_unit_test(test_yaml_reads_tags),
        cmocka_unit_test(test_yaml_refuses_tag_mismatches),
        cmocka_unit_test(test_yaml_reads_keys),
        cmocka_unit_test(test_yaml_refuses_keys),
        cmocka_unit_test(test_yaml_refuses_duplicates),
        cmocka_unit_test(test_yaml_refuses_keys_equal_as_strings),
        cmocka_unit_test(test_yaml_reads_blocks),
        cmocka_unit_test(test_yaml_reads_collections),
        cmocka_unit_test(test_yaml_reads_aliases),
        cmocka_unit_test(test_yaml_reads_merges),
        cmocka_unit_test(test_yaml_refuses_merges),
        cmocka_unit_test(test_yaml_refuses_aliases),
        cmocka_unit_test(test_yaml_refuses_infinite_numbers),
        cmocka_unit_test(test_yaml_refuses_syntax_errors),
        cmocka_unit_test(test_yaml_reads_documents),
        cmocka_unit_test(test_yaml_keeps_member_order),
        cmocka_unit_test(test_yaml_knows_lines),
        cmocka_unit_test(test_yaml_copies),
        cmocka_unit_test(test_yaml_reads_utf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
