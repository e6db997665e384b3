/* Quantities: upstream's readings and texts by table, and arithmetic judged by 128-bit integers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/json/json.h"
#include "kube/quantity/quantity.h"
#include "support/random.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define ARENA_BYTES ((size_t)64 << 20)
#define TEXT_BYTES 8192
#define ROUNDS 20000
#define NANO INT64_C(1000000000)

static struct td_quantity parsed(struct td_arena *arena, const char *text)
{
    struct td_quantity quantity;
    struct td_error err = TD_ERROR_INIT;
    if (td_quantity_parse(arena, td_str_from(text), &quantity, &err) != TD_OK) {
        fail_msg("%s", err.message);
    }
    return quantity;
}

static td_str canonical(struct td_arena *arena, const struct td_quantity *quantity)
{
    td_auto_buf buf;
    td_buf_init(&buf, TEXT_BYTES);
    td_quantity_write_canonical(quantity, &buf);
    assert_false(buf.is_full);
    return td_arena_copy_str(arena, td_buf_str(&buf));
}

static void assert_text(struct td_arena *arena, const struct td_quantity *quantity,
                        const char *expected)
{
    assert_string_equal(td_quantity_text(arena, quantity).ptr, expected);
}

/* Each row was answered by upstream: text kept or shortened, form, whole and milli value. */
static void test_quantity_parse_keeps_or_shortens_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *string;
        const char *canonical;
        const char *format;
        int64_t value;
        int64_t milli;
    } rows[] = {
        {"0", "0", "0", "DecimalSI", 0, 0},
        {"1", "1", "1", "DecimalSI", 1, 1000},
        {"+1", "+1", "1", "DecimalSI", 1, 1000},
        {"5.", "5.", "5", "DecimalSI", 5, 5000},
        {".5", "500m", "500m", "DecimalSI", 1, 500},
        {"0.5", "500m", "500m", "DecimalSI", 1, 500},
        {"100m", "100m", "100m", "DecimalSI", 1, 100},
        {"-1.5", "-1500m", "-1500m", "DecimalSI", -2, -1500},
        {"1000m", "1", "1", "DecimalSI", 1, 1000},
        {"1500m", "1500m", "1500m", "DecimalSI", 2, 1500},
        {"1.500", "1.500", "1500m", "DecimalSI", 2, 1500},
        {"00012k", "00012k", "12k", "DecimalSI", 12000, 12000000},
        {"+", "0", "0", "DecimalSI", 0, 0},
        {"-", "0", "0", "DecimalSI", 0, 0},
        {".", "0", "0", "DecimalSI", 0, 0},
        {"Ki", "0", "0", "BinarySI", 0, 0},
        {"e3", "0", "0", "DecimalExponent", 0, 0},
        {"128Mi", "128Mi", "128Mi", "BinarySI", 134217728, 134217728000},
        {"1Mi", "1Mi", "1Mi", "BinarySI", 1048576, 1048576000},
        {"1.5Gi", "1536Mi", "1536Mi", "BinarySI", 1610612736, 1610612736000},
        {"0.5Ki", "512", "512", "BinarySI", 512, 512000},
        {"1023", "1023", "1023", "DecimalSI", 1023, 1023000},
        {"0.3Ki", "307200m", "307200m", "BinarySI", 308, 307200},
        {"0.0001Ki", "102400u", "102400u", "DecimalSI", 1, 103},
        {"8Ei", "9223372036854775807", "9223372036854775807", "BinarySI", INT64_MAX, INT64_MAX},
        {"-9Ei", "-9223372036854775807", "-9223372036854775807", "BinarySI", -INT64_MAX, INT64_MIN},
        {"1e3", "1e3", "1e3", "DecimalExponent", 1000, 1000000},
        {"1E6", "1E6", "1e6", "DecimalExponent", 1000000, 1000000000},
        {"1e1", "10", "10", "DecimalExponent", 10, 10000},
        {"1e-1", "100e-3", "100e-3", "DecimalExponent", 1, 100},
        {"0.1n", "1n", "1n", "DecimalSI", 1, 1},
        {"-0.1n", "-1n", "-1n", "DecimalSI", -1, -1},
        {"1e-400", "1e-9", "1e-9", "DecimalExponent", 1, 1},
        {"1000E", "1", "1", "DecimalSI", INT64_MAX, INT64_MAX},
        {"1e100", "10e99", "10e99", "DecimalExponent", INT64_MAX, INT64_MAX},
        {"12345678901234567890", "12345678901234567890", "12345678901234567890", "DecimalSI",
         INT64_MAX, INT64_MAX},
        {"9223372036854775.807k", "9223372036854775807", "9223372036854775807", "DecimalSI",
         INT64_MAX, INT64_MAX},
        {"1.0000000001", "1000000001n", "1000000001n", "DecimalSI", 2, 1001},
        {"1e2147483646", "1e2147483646", "1e2147483646", "DecimalExponent", INT64_MAX, INT64_MAX},
        {"1e2147483647", "10e2147483646", "10e2147483646", "DecimalExponent", INT64_MAX, INT64_MAX},
        {"3e4294967296", "3e4294967296", "3", "DecimalExponent", 3, 3000},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_quantity quantity = parsed(&arena, rows[i].text);
        assert_text(&arena, &quantity, rows[i].string);
        assert_string_equal(canonical(&arena, &quantity).ptr, rows[i].canonical);
        assert_string_equal(td_quantity_format_name(quantity.format).ptr, rows[i].format);
        assert_int_equal(td_quantity_value(&quantity), rows[i].value);
        assert_int_equal(td_quantity_milli(&quantity), rows[i].milli);
    }
}

/* Malformed texts are refused with a message that names them, and the result is left alone. */
static void test_quantity_rejects_malformed_text(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",          "1.5.5Gi",
        "1GiGi",     "1Gi ",
        " 1",        "1 ",
        "++1",       "1ki",
        "1KI",       "1B",
        "1e",        "1e+",
        "1e3m",      "1Ee3",
        "1e--3",     "1e3.5",
        "ten",       "Ei",
        ".Pi",       ".e-10",
        "0x1",       "1,5",
        "1_0",       "-e-10",
        "1\xc2\xa0", "1e9223372036854775808",
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_quantity quantity = td_quantity_new(7, TD_QUANTITY_DECIMAL_SI);
        struct td_error err = TD_ERROR_INIT;
        int code = td_quantity_parse(&arena, td_str_from(rows[i]), &quantity, &err);
        assert_int_equal(code, TD_INVALID);
        char quoted[64];
        (void)snprintf(quoted, sizeof(quoted), "'%s'", rows[i]);
        assert_non_null(strstr(err.message, quoted));
        assert_int_equal(quantity.value, 7);
    }
}

/* A text may be as long as its cap and no longer. */
static void test_quantity_text_is_capped(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    char text[TD_QUANTITY_TEXT_BYTES_MAX + 1];
    memset(text, '9', sizeof(text));
    struct td_quantity quantity;
    td_str at_cap = {.ptr = text, .len = TD_QUANTITY_TEXT_BYTES_MAX};
    assert_int_equal(td_quantity_parse(&arena, at_cap, &quantity, NULL), TD_OK);
    assert_true(td_str_equal(canonical(&arena, &quantity), at_cap));
    struct td_error err = TD_ERROR_INIT;
    td_str past_cap = {.ptr = text, .len = TD_QUANTITY_TEXT_BYTES_MAX + 1};
    assert_int_equal(td_quantity_parse(&arena, past_cap, &quantity, &err), TD_LIMIT);
    assert_non_null(strstr(err.message, "1025"));
    /* An arena past its own cap is told on the first number that needs it. */
    td_auto_arena small;
    td_arena_init(&small, 64);
    assert_int_equal(td_quantity_parse(&small, at_cap, &quantity, &err), TD_LIMIT);
}

/* The quantities of every day never touch the arena. */
static void test_quantity_common_texts_allocate_nothing(void **state)
{
    (void)state;
    static const char *const rows[] = {"100m", "128Mi", "1", "1.5Gi", "0.25", "2e3", "3u"};
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_quantity sum = td_quantity_new(0, TD_QUANTITY_DECIMAL_SI);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_quantity quantity = parsed(&arena, rows[i]);
        td_quantity_add(&arena, &sum, &quantity);
        assert_int_equal(td_quantity_compare(&quantity, &sum), i == 0 ? 0 : -1);
    }
    assert_int_equal(arena.used_bytes, 0);
}

/* JSON tokens: quotes and Unicode spaces around a number go, escapes stay, null is no quantity. */
static void test_quantity_json_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *token;
        int code;
        const char *string;
        const char *format;
    } rows[] = {
        {"null", TD_OK, "0", ""},
        {"\"1\"", TD_OK, "1", "DecimalSI"},
        {"1", TD_OK, "1", "DecimalSI"},
        {"1.5", TD_OK, "1500m", "DecimalSI"},
        {"1e3", TD_OK, "1e3", "DecimalExponent"},
        {"\" 1Gi\t\"", TD_OK, "1Gi", "BinarySI"},
        {"\"\u3000\u00a01\u2028\xc2\x85\"", TD_OK, "1", "DecimalSI"},
        {"\"1\u200b\"", TD_INVALID, "", ""},
        {"\"\\u0031\"", TD_INVALID, "", ""},
        {"\"null\"", TD_INVALID, "", ""},
        {"\"\"", TD_INVALID, "", ""},
        {"\"", TD_INVALID, "", ""},
        {"", TD_INVALID, "", ""},
        {"true", TD_INVALID, "", ""},
        {"\"1", TD_INVALID, "", ""},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_quantity quantity = td_quantity_new(7, TD_QUANTITY_DECIMAL_SI);
        int code = td_quantity_parse_json(&arena, td_str_from(rows[i].token), &quantity, NULL);
        assert_int_equal(code, rows[i].code);
        if (code == TD_OK) {
            assert_text(&arena, &quantity, rows[i].string);
            assert_string_equal(td_quantity_format_name(quantity.format).ptr, rows[i].format);
        } else {
            assert_int_equal(quantity.value, 7);
        }
    }
}

/* Nodes of a tree read as their tokens do; other types are refused. */
static void test_quantity_from_json_nodes(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_quantity quantity;
    struct td_json *node = td_json_new_string(&arena, TD_STR(" 2Gi "));
    assert_int_equal(td_quantity_from_json(&arena, node, &quantity, NULL), TD_OK);
    assert_text(&arena, &quantity, "2Gi");
    node = td_json_new_number(&arena, TD_STR("0.25"));
    assert_int_equal(td_quantity_from_json(&arena, node, &quantity, NULL), TD_OK);
    assert_text(&arena, &quantity, "250m");
    assert_int_equal(td_quantity_from_json(&arena, NULL, &quantity, NULL), TD_OK);
    assert_int_equal(quantity.format, TD_QUANTITY_NONE);
    node = td_json_new_string(&arena, TD_STR("\"1\""));
    assert_int_equal(td_quantity_from_json(&arena, node, &quantity, NULL), TD_INVALID);
    assert_int_equal(td_quantity_from_json(&arena, td_json_new_bool(&arena, true), &quantity, NULL),
                     TD_INVALID);
    assert_int_equal(td_quantity_from_json(&arena, td_json_new_array(&arena), &quantity, NULL),
                     TD_INVALID);
}

/* Operations by table: format of the result, the way to decimals and back, the corners of int64. */
static void test_quantity_arithmetic_answers(void **state)
{
    (void)state;
    static const struct {
        const char *a;
        char operation;
        const char *b;
        const char *result;
    } rows[] = {
        {"1Gi", '+', "1Gi", "2Gi"},
        {"1Gi", '+', "1G", "2073741824"},
        {"0", '+', "1Ki", "1Ki"},
        {"0Gi", '+', "1k", "1k"},
        {"1", '+', "1n", "1000000001n"},
        {"0.5", '+', "500m", "1"},
        {"9223372036854775807", '+', "1", "9223372036854775808"},
        {"9223372036854775808", '-', "1", "9223372036854775807"},
        {"-8Ei", '-', "1", "-8Ei"},
        {"8Ei", '+', "8Ei", "18446744073709551614"},
        {"8Ei", '+', "1", "8Ei"},
        {"1e30", '+', "1", "1000000000000000000000000000001"},
        {"1e30", '-', "1e30", "0"},
        {"1E", '+', "1n", "1000000000000000000000000001n"},
        {"1", '-', "1", "0"},
        {"1", '-', "2Gi", "-2147483647"},
        {"1e2000000000", '+', "1", "100e1999999998"},
        {"1", '-', "1e2000000000", "-100"},
        {"1Gi", '+', "1e2000000000", "100e1999999998"},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_quantity a = parsed(&arena, rows[i].a);
        struct td_quantity b = parsed(&arena, rows[i].b);
        if (rows[i].operation == '+') {
            td_quantity_add(&arena, &a, &b);
        } else {
            td_quantity_sub(&arena, &a, &b);
        }
        assert_text(&arena, &a, rows[i].result);
    }
}

/* Mul tells whether the digits still fit; RoundUp whether it was exact; Neg goes both ways. */
static void test_quantity_multiply_round_negate(void **state)
{
    (void)state;
    static const struct {
        const char *a;
        char operation;
        int64_t operand;
        bool is_exact;
        const char *result;
    } rows[] = {
        {"100m", '*', 3, true, "300m"},
        {"-1.5", '*', 3, true, "-4500m"},
        {"1Gi", '*', 0, true, "0"},
        {"1e30", '*', 3, true, "3e30"},
        {"70Pi", '*', 1358, false, "95060Pi"},
        {"12345678901234567890", '*', 3, false, "37037036703703703670"},
        {"1", '*', INT64_MIN, true, "-9223372036854775808"},
        {"2", '*', INT64_MIN, false, "-18446744073709551616"},
        {"-1.5", 'r', 0, false, "-2"},
        {"1.5Gi", 'r', 0, true, "1536Mi"},
        {"467u", 'r', 2, false, "100"},
        {"53.m", 'r', -7, true, "53.m"},
        {"1n", 'r', 2000000001, false, "1"},
        {"99999999999999999999", 'r', 1, false, "100E"},
        {"99999999999999999999", 'r', -3, true, "99999999999999999999"},
        {"1e30", 'r', 0, true, "1e30"},
        {"1Gi", 'n', 0, true, "-1Gi"},
        {"-12345678901234567890", 'n', 0, true, "12345678901234567890"},
        {"0", 'n', 0, true, "0"},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_quantity a = parsed(&arena, rows[i].a);
        bool is_exact = true;
        if (rows[i].operation == '*') {
            is_exact = td_quantity_multiply(&arena, &a, rows[i].operand);
        } else if (rows[i].operation == 'r') {
            is_exact = td_quantity_round_up(&arena, &a, (int32_t)rows[i].operand);
        } else {
            td_quantity_negate(&arena, &a);
        }
        assert_text(&arena, &a, rows[i].result);
        assert_int_equal(is_exact, rows[i].is_exact);
    }
    struct td_quantity lowest = td_quantity_new(INT64_MIN, TD_QUANTITY_BINARY_SI);
    assert_text(&arena, &lowest, "-9223372036854775808");
    td_quantity_negate(&arena, &lowest);
    assert_text(&arena, &lowest, "8Ei");
    struct td_quantity one = td_quantity_new(1, TD_QUANTITY_DECIMAL_SI);
    struct td_quantity min = td_quantity_new(INT64_MIN, TD_QUANTITY_DECIMAL_SI);
    td_quantity_sub(&arena, &one, &min);
    assert_text(&arena, &one, "9223372036854775809");
}

/* Repeated growth stays inside the cap of digits and keeps the high ones. */
static void test_quantity_digits_are_capped(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_quantity product = parsed(&arena, "9e0");
    for (int i = 0; i < 300; i++) {
        (void)td_quantity_multiply(&arena, &product, INT64_MAX);
    }
    assert_true(canonical(&arena, &product).len < TD_QUANTITY_DIGITS_MAX + 32);
    struct td_quantity smaller = product;
    struct td_quantity one = td_quantity_new(1, TD_QUANTITY_DECIMAL_SI);
    td_quantity_sub(&arena, &smaller, &one);
    assert_true(td_quantity_compare(&smaller, &product) <= 0);
    assert_int_equal(td_quantity_value(&product), INT64_MAX);
    assert_true(isinf(td_quantity_to_double(&product)));
}

/* Floats have upstream's last bit. */
static void test_quantity_to_double(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } rows[] = {
        {"0", 0},
        {"0e400", 0},
        {"100m", 0.1},
        {"608u", 0.0006079999999999999},
        {"0.3Ki", 307.20000000000005},
        {"44.72Ki", 45793.280000000006},
        {"-3T", -3e12},
        {"1e30", 1e30},
        {"12345678901234567890", 1.2345678901234569e+19},
        {"12345678901234567890e280", 1.2345678901234568e+299},
        {"1e308", 1e308},
        {"1e309", INFINITY},
        {"-1e309", -INFINITY},
        {"36893488147419103233", 3.6893488147419103e+19},
        {"123456789012345678901234567890", 1.234567890123457e+29},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_quantity quantity = parsed(&arena, rows[i].text);
        double value = td_quantity_to_double(&quantity);
        assert_true(value == rows[i].value);
    }
}

/* Constructors, and scaled values at both ends. */
static void test_quantity_constructors_and_scaled(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_quantity quantity = td_quantity_new_milli(1500, TD_QUANTITY_BINARY_SI);
    assert_text(&arena, &quantity, "1500m");
    quantity = td_quantity_new_milli(1048576000, TD_QUANTITY_BINARY_SI);
    assert_text(&arena, &quantity, "1Mi");
    quantity = td_quantity_new_scaled(15, 20);
    assert_text(&arena, &quantity, "1500E");
    assert_int_equal(td_quantity_scaled(&quantity, 20), 15);
    assert_int_equal(td_quantity_scaled(&quantity, 21), 2);
    assert_int_equal(td_quantity_scaled(&quantity, 2000), 1);
    assert_int_equal(td_quantity_scaled(&quantity, INT32_MIN), INT64_MAX);
    quantity = td_quantity_new(-7, TD_QUANTITY_NONE);
    assert_text(&arena, &quantity, "-7");
    assert_int_equal(td_quantity_scaled(&quantity, 1), -1);
    quantity = parsed(&arena, "-12345678901234567890.5");
    assert_int_equal(td_quantity_scaled(&quantity, 3), -12345678901234568);
    assert_int_equal(td_quantity_scaled(&quantity, 0), INT64_MIN);
    assert_int_equal(td_quantity_scaled(&quantity, 30), -1);
}

/* A number of nanos as a quantity in one of several forms. */
static struct td_quantity random_quantity(struct td_arena *arena, __int128 *ret_nanos)
{
    static const struct {
        const char *suffix;
        int64_t nanos; /* of one unit */
    } forms[] = {
        {"n", 1},           {"u", 1000},         {"m", 1000000},         {"", NANO},
        {"k", 1000 * NANO}, {"Ki", 1024 * NANO}, {"Mi", 1048576 * NANO}, {"e1", 10 * NANO},
    };
    size_t form = random_next() % COUNT(forms);
    int64_t count = (int64_t)random_next() >> (1 + random_next() % 63);
    td_str text = td_arena_format(arena, "%lld%s", (long long)count, forms[form].suffix);
    *ret_nanos = (__int128)count * forms[form].nanos;
    /* Binary quantities are capped at 2^63-1. */
    __int128 cap = (__int128)INT64_MAX * NANO;
    if (strchr(forms[form].suffix, 'i') && (*ret_nanos > cap || *ret_nanos < -cap)) {
        *ret_nanos = *ret_nanos > 0 ? cap : -cap;
    }
    return parsed(arena, text.ptr);
}

static int order(__int128 a, __int128 b)
{
    return (a > b) - (a < b);
}

/* Comparing, adding and subtracting agree with exact integers, and undo each other. */
static void test_quantity_agrees_with_exact_integers(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (int i = 0; i < ROUNDS; i++) {
        td_arena_reset(&arena);
        __int128 nanos[3];
        struct td_quantity items[3];
        for (int k = 0; k < 3; k++) {
            items[k] = random_quantity(&arena, &nanos[k]);
            assert_int_equal(td_quantity_sign(&items[k]), order(nanos[k], 0));
        }
        int ab = td_quantity_compare(&items[0], &items[1]);
        assert_int_equal(ab, order(nanos[0], nanos[1]));
        assert_int_equal(td_quantity_compare(&items[1], &items[0]), -ab);
        struct td_quantity sum = items[0];
        td_quantity_add(&arena, &sum, &items[1]);
        assert_int_equal(td_quantity_compare(&sum, &items[2]),
                         order(nanos[0] + nanos[1], nanos[2]));
        td_quantity_sub(&arena, &sum, &items[1]);
        assert_int_equal(td_quantity_compare(&sum, &items[0]), 0);
        struct td_quantity difference = items[0];
        td_quantity_sub(&arena, &difference, &items[1]);
        assert_int_equal(td_quantity_sign(&difference), ab);
        td_quantity_negate(&arena, &difference);
        td_quantity_add(&arena, &difference, &items[0]);
        assert_int_equal(td_quantity_compare(&difference, &items[1]), 0);
    }
}

/* What is written reads back as the same number; writing that again changes nothing. */
static void test_quantity_text_round_trips(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (int i = 0; i < ROUNDS; i++) {
        td_arena_reset(&arena);
        __int128 nanos = 0;
        struct td_quantity quantity = random_quantity(&arena, &nanos);
        td_str text = td_quantity_text(&arena, &quantity);
        struct td_quantity again = parsed(&arena, text.ptr);
        assert_int_equal(td_quantity_compare(&again, &quantity), 0);
        assert_string_equal(td_quantity_text(&arena, &again).ptr, text.ptr);
        td_str form = canonical(&arena, &quantity);
        struct td_quantity from_form = parsed(&arena, form.ptr);
        assert_int_equal(td_quantity_compare(&from_form, &quantity), 0);
        assert_string_equal(canonical(&arena, &from_form).ptr, form.ptr);
    }
}

/* Values and rounding never turn the order of two quantities around, and round away from zero. */
static void test_quantity_rounding_is_monotone(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (int i = 0; i < ROUNDS; i++) {
        td_arena_reset(&arena);
        __int128 nanos[2];
        struct td_quantity a = random_quantity(&arena, &nanos[0]);
        struct td_quantity b = random_quantity(&arena, &nanos[1]);
        int before = td_quantity_compare(&a, &b);
        int values = order(td_quantity_milli(&a), td_quantity_milli(&b));
        assert_true(values == 0 || values == before);
        struct td_quantity original = a;
        int32_t scale = (int32_t)(random_next() % 19) - 9;
        bool is_exact = td_quantity_round_up(&arena, &a, scale);
        int moved = td_quantity_compare(&a, &original);
        assert_int_equal(moved, is_exact ? 0 : td_quantity_sign(&original));
        (void)td_quantity_round_up(&arena, &b, scale);
        int after = td_quantity_compare(&a, &b);
        assert_true(after == 0 || after == before);
    }
}

/* For reading: the unit that keeps the number small, exact where that is as short. */
static void test_quantity_short_texts(void **state)
{
    (void)state;
    static const struct {
        const char *quantity;
        bool is_bytes;
        const char *text;
    } rows[] = {
        {"3087466496", true, "2.9Gi"},
        {"3666791614", true, "3.4Gi"},
        {"1280Mi", true, "1280Mi"},
        {"1Gi", true, "1Gi"},
        {"262144k", true, "250Mi"},
        {"1073741823", true, "1Gi"},
        {"1047000000", true, "998Mi"},
        {"1048000000", true, "999Mi"},
        {"1048400000", true, "1000Mi"},
        {"15.5Gi", true, "15.5Gi"},
        {"100", true, "100"},
        {"0", true, "0"},
        {"-5Gi", true, "-5Gi"},
        {"430m", false, "430m"},
        {"2100m", false, "2.1"},
        {"1357m", false, "1.357"},
        {"0", false, "0"},
        {"1500", false, "1500"},
        {"412300m", false, "412.3"},
        {"2500000", false, "2.5M"},
        {"100u", false, "0.1m"},
    };
    td_auto_arena arena = td_arena_capped(ARENA_BYTES);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_quantity quantity = parsed(&arena, rows[i].quantity);
        td_str text = td_quantity_short(&arena, &quantity, rows[i].is_bytes);
        if (!td_str_equal(text, td_str_from(rows[i].text))) {
            fail_msg("%s is %.*s", rows[i].quantity, TD_STR_ARG(text));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantity_parse_keeps_or_shortens_text),
        cmocka_unit_test(test_quantity_rejects_malformed_text),
        cmocka_unit_test(test_quantity_text_is_capped),
        cmocka_unit_test(test_quantity_common_texts_allocate_nothing),
        cmocka_unit_test(test_quantity_json_tokens),
        cmocka_unit_test(test_quantity_from_json_nodes),
        cmocka_unit_test(test_quantity_arithmetic_answers),
        cmocka_unit_test(test_quantity_multiply_round_negate),
        cmocka_unit_test(test_quantity_digits_are_capped),
        cmocka_unit_test(test_quantity_to_double),
        cmocka_unit_test(test_quantity_constructors_and_scaled),
        cmocka_unit_test(test_quantity_agrees_with_exact_integers),
        cmocka_unit_test(test_quantity_text_round_trips),
        cmocka_unit_test(test_quantity_rounding_is_monotone),
        cmocka_unit_test(test_quantity_short_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
