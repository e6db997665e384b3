/*
 * Which texts are JSON: the rules that the public JSON parsing test corpus tests, as rows of our
 * own. Every row goes through the tree, the token loop and skip, at every alignment to the blocks
 * that the scanner reads, in a heap block of exactly its size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/json/json_reader.h"

enum verdict { REJECT, ACCEPT };

struct suite_row {
    const char *name;
    td_str text;
    enum verdict verdict;
};

/* What RFC 8259 settles. */
static const struct suite_row suite_rows[] = {
    {"empty array", TD_STR_INIT("[]"), ACCEPT},
    {"empty object", TD_STR_INIT("{}"), ACCEPT},
    {"spaces inside an empty array", TD_STR_INIT("[   ]"), ACCEPT},
    {"one item", TD_STR_INIT("[1]"), ACCEPT},
    {"items of every kind", TD_STR_INIT("[null,1,\"1\",{},[],true,false]"), ACCEPT},
    {"array in array", TD_STR_INIT("[[]]"), ACCEPT},
    {"arrays side by side", TD_STR_INIT("[[],[[]],[]]"), ACCEPT},
    {"empty string item", TD_STR_INIT("[\"\"]"), ACCEPT},
    {"space before the array", TD_STR_INIT(" [1]"), ACCEPT},
    {"space after an array", TD_STR_INIT("[1] "), ACCEPT},
    {"newline after a value", TD_STR_INIT("[1]\n"), ACCEPT},
    {"items on lines", TD_STR_INIT("[1\n,\n2]"), ACCEPT},
    {"several nulls", TD_STR_INIT("[1,null,null,null,2]"), ACCEPT},
    {"only false", TD_STR_INIT("[false]"), ACCEPT},
    {"only true", TD_STR_INIT("[true]"), ACCEPT},
    {"only null", TD_STR_INIT("[null]"), ACCEPT},
    {"trailing tabs", TD_STR_INIT("[2]\t\t"), ACCEPT},
    {"every kind of white space", TD_STR_INIT(" \t\r\n[ \t\r\n1 \t\r\n, \t\r\n2 \t\r\n] \t\r\n"),
     ACCEPT},
    {"scalar at top: number", TD_STR_INIT("42"), ACCEPT},
    {"scalar at top: negative", TD_STR_INIT("-0.1"), ACCEPT},
    {"scalar at top: string", TD_STR_INIT("\"asd\""), ACCEPT},
    {"scalar at top: empty string", TD_STR_INIT("\"\""), ACCEPT},
    {"scalar at top: true", TD_STR_INIT("true"), ACCEPT},
    {"scalar at top: false", TD_STR_INIT("false"), ACCEPT},
    {"scalar at top: null", TD_STR_INIT("null"), ACCEPT},
    {"scalar with spaces around", TD_STR_INIT("  7  "), ACCEPT},
    {"zero", TD_STR_INIT("[0]"), ACCEPT},
    {"minus zero", TD_STR_INIT("[-0]"), ACCEPT},
    {"minus zero with fraction", TD_STR_INIT("[-0.0]"), ACCEPT},
    {"minus zero with exponent", TD_STR_INIT("[-0e+1]"), ACCEPT},
    {"zero exponent", TD_STR_INIT("[0e1]"), ACCEPT},
    {"zero exponent plus", TD_STR_INIT("[0e+1]"), ACCEPT},
    {"capital exponent", TD_STR_INIT("[1E22]"), ACCEPT},
    {"capital exponent minus", TD_STR_INIT("[1E-2]"), ACCEPT},
    {"capital exponent plus", TD_STR_INIT("[1E+2]"), ACCEPT},
    {"exponent", TD_STR_INIT("[123e45]"), ACCEPT},
    {"fraction with exponent", TD_STR_INIT("[123.456e78]"), ACCEPT},
    {"fraction", TD_STR_INIT("[123.456789]"), ACCEPT},
    {"negative int", TD_STR_INIT("[-123]"), ACCEPT},
    {"minus one", TD_STR_INIT("[-1]"), ACCEPT},
    {"close to zero",
     TD_STR_INIT(
         "[-0.00000000000000000000000000000000000000000000000000000000000000000000000000001]"),
     ACCEPT},
    {"exponent with leading zeros", TD_STR_INIT("[1e0007]"), ACCEPT},
    {"int after space", TD_STR_INIT("[ 4]"), ACCEPT},
    {"many digits", TD_STR_INIT("[100000000000000000000000000000001]"), ACCEPT},
    {"real with minus exponent", TD_STR_INIT("[1e-2]"), ACCEPT},
    {"real with plus exponent", TD_STR_INIT("[1e+2]"), ACCEPT},
    {"object with one member", TD_STR_INIT("{\"a\":\"b\"}"), ACCEPT},
    {"two members", TD_STR_INIT("{\"a\":\"b\",\"c\":\"d\"}"), ACCEPT},
    {"same name twice", TD_STR_INIT("{\"a\":\"b\",\"a\":\"c\"}"), ACCEPT},
    {"same name and value twice", TD_STR_INIT("{\"a\":\"b\",\"a\":\"b\"}"), ACCEPT},
    {"empty name", TD_STR_INIT("{\"\":0}"), ACCEPT},
    {"name with escaped NUL", TD_STR_INIT("{\"foo\\u0000bar\":42}"), ACCEPT},
    {"long names",
     TD_STR_INIT("{\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\":{"
                 "\"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\":1}}"),
     ACCEPT},
    {"extreme numbers", TD_STR_INIT("{\"min\":-1.0e+28,\"max\":1.0e+28}"), ACCEPT},
    {"members on lines", TD_STR_INIT("{\n\"a\": \"b\"\n}"), ACCEPT},
    {"escaped name", TD_STR_INIT("{\"\\u0061\\n\":1}"), ACCEPT},
    {"object in array in object", TD_STR_INIT("{\"a\":[{\"b\":[{}]}]}"), ACCEPT},
    {"name of spaces", TD_STR_INIT("{\" \":1}"), ACCEPT},
    {"space around colon", TD_STR_INIT("{\"a\" : 1}"), ACCEPT},
    {"every short escape", TD_STR_INIT("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]"), ACCEPT},
    {"escaped solidus", TD_STR_INIT("[\"\\/\"]"), ACCEPT},
    {"escaped quote", TD_STR_INIT("[\"\\\"\"]"), ACCEPT},
    {"escaped backslash", TD_STR_INIT("[\"\\\\\"]"), ACCEPT},
    {"escaped backslash before n", TD_STR_INIT("[\"\\\\n\"]"), ACCEPT},
    {"double escape a", TD_STR_INIT("[\"\\\\a\"]"), ACCEPT},
    {"unicode escape", TD_STR_INIT("[\"\\u0041\"]"), ACCEPT},
    {"unicode escape capital digits", TD_STR_INIT("[\"\\uABCD\\uabcd\"]"), ACCEPT},
    {"escaped control", TD_STR_INIT("[\"\\u0012\"]"), ACCEPT},
    {"escaped NUL", TD_STR_INIT("[\"\\u0000\"]"), ACCEPT},
    {"surrogate pair", TD_STR_INIT("[\"\\uD801\\udc37\"]"), ACCEPT},
    {"two pairs", TD_STR_INIT("[\"\\ud83d\\ude39\\ud83d\\udc8d\"]"), ACCEPT},
    {"last pair of the range", TD_STR_INIT("[\"\\uDBFF\\uDFFF\"]"), ACCEPT},
    {"first pair of the range", TD_STR_INIT("[\"\\uD800\\uDC00\"]"), ACCEPT},
    {"escaped noncharacter FDD0", TD_STR_INIT("[\"\\uFDD0\"]"), ACCEPT},
    {"escaped noncharacter FFFE", TD_STR_INIT("[\"\\uFFFE\"]"), ACCEPT},
    {"escaped noncharacter 1FFFE", TD_STR_INIT("[\"\\uD83F\\uDFFE\"]"), ACCEPT},
    {"escaped line separator", TD_STR_INIT("[\"\\u2028\\u2029\"]"), ACCEPT},
    {"escaped zero width space", TD_STR_INIT("[\"\\u200B\"]"), ACCEPT},
    {"escaped invisible plus", TD_STR_INIT("[\"\\u2064\"]"), ACCEPT},
    {"escaped DEL", TD_STR_INIT("[\"\\u007F\"]"), ACCEPT},
    {"escaped uEscape word", TD_STR_INIT("[\"\\u0061\\u30af\\u30EA\\u30b9\"]"), ACCEPT},
    {"two bytes of UTF-8", TD_STR_INIT("[\"\xc3\xa9\"]"), ACCEPT},
    {"three bytes of UTF-8", TD_STR_INIT("[\"\xe2\x82\xac\"]"), ACCEPT},
    {"four bytes of UTF-8", TD_STR_INIT("[\"\xf0\x9f\x98\x80\"]"), ACCEPT},
    {"raw line separator", TD_STR_INIT("[\"\xe2\x80\xa8\"]"), ACCEPT},
    {"raw paragraph separator", TD_STR_INIT("[\"\xe2\x80\xa9\"]"), ACCEPT},
    {"raw noncharacter FFFF", TD_STR_INIT("[\"\xef\xbf\xbf\"]"), ACCEPT},
    {"raw noncharacter 10FFFF", TD_STR_INIT("[\"\xf4\x8f\xbf\xbf\"]"), ACCEPT},
    {"raw noncharacter 1FFFF", TD_STR_INIT("[\"\xf0\x9b\xbf\xbf\"]"), ACCEPT},
    {"raw DEL", TD_STR_INIT("[\"\x7f\"]"), ACCEPT},
    {"raw BOM inside a string", TD_STR_INIT("[\"\xef\xbb\xbf\"]"), ACCEPT},
    {"first three-byte character", TD_STR_INIT("[\"\xe0\xa0\x80\"]"), ACCEPT},
    {"last before surrogates", TD_STR_INIT("[\"\xed\x9f\xbf\"]"), ACCEPT},
    {"first after surrogates", TD_STR_INIT("[\"\xee\x80\x80\"]"), ACCEPT},
    {"first four-byte character", TD_STR_INIT("[\"\xf0\x90\x80\x80\"]"), ACCEPT},
    {"comment inside a string", TD_STR_INIT("[\"a/*b*/c/*d//e\"]"), ACCEPT},
    {"space string", TD_STR_INIT("\" \""), ACCEPT},
    {"string with a reserved character", TD_STR_INIT("[\"new\xc2\xa0line\"]"), ACCEPT},
    {"string across one block", TD_STR_INIT("[\"0123456789abcdef0123456789abcdef\"]"), ACCEPT},
    {"escape at a block's end", TD_STR_INIT("[\"0123456789abcd\\n0123456789abcd\\u00e9\"]"),
     ACCEPT},
    {"wide character across blocks",
     TD_STR_INIT("[\"0123456789abcde\xf0\x9f\x98\x80"
                 "f0123456789abc\xe2\x82\xac\"]"),
     ACCEPT},
    {"name as value text", TD_STR_INIT("[\"\\\"a\\\":1\"]"), ACCEPT},
    {"nothing", TD_STR_INIT(""), REJECT},
    {"only spaces", TD_STR_INIT("   "), REJECT},
    {"only a newline", TD_STR_INIT("\n"), REJECT},
    {"byte order mark alone", TD_STR_INIT("\xef\xbb\xbf"), REJECT},
    {"half a byte order mark", TD_STR_INIT("\xef\xbb{}"), REJECT},
    {"byte order mark", TD_STR_INIT("\xef\xbb\xbf{}"), REJECT},
    {"words without a comma", TD_STR_INIT("[1 true]"), REJECT},
    {"invalid byte as item", TD_STR_INIT("[a\xe5]"), REJECT},
    {"colon for comma", TD_STR_INIT("[\"\": 1]"), REJECT},
    {"comma after an array", TD_STR_INIT("[\"\"],"), REJECT},
    {"leading comma", TD_STR_INIT("[,1]"), REJECT},
    {"double comma", TD_STR_INIT("[1,,2]"), REJECT},
    {"double trailing comma", TD_STR_INIT("[\"x\",,]"), REJECT},
    {"trailing comma", TD_STR_INIT("[1,]"), REJECT},
    {"only a comma", TD_STR_INIT("[,]"), REJECT},
    {"extra bracket", TD_STR_INIT("[\"x\"]]"), REJECT},
    {"not closed", TD_STR_INIT("[1"), REJECT},
    {"not closed on lines", TD_STR_INIT("[\"a\",\n4\n,1,"), REJECT},
    {"open only", TD_STR_INIT("["), REJECT},
    {"open with comma", TD_STR_INIT("[1,"), REJECT},
    {"array of minus", TD_STR_INIT("[-]"), REJECT},
    {"inner array without comma", TD_STR_INIT("[3[4]]"), REJECT},
    {"spaces before a missing item", TD_STR_INIT("[   , \"\"]"), REJECT},
    {"star in array", TD_STR_INIT("[*]"), REJECT},
    {"form feed in array", TD_STR_INIT("[\"a\x0c\"]"), REJECT},
    {"form feed as space", TD_STR_INIT("[\x0c]"), REJECT},
    {"vertical tab as space",
     TD_STR_INIT("[\x0b"
                 "1]"),
     REJECT},
    {"no-break space",
     TD_STR_INIT("[\xc2\xa0"
                 "1]"),
     REJECT},
    {"closed with a brace", TD_STR_INIT("[1}"), REJECT},
    {"object closed with a bracket", TD_STR_INIT("{\"a\":1]"), REJECT},
    {"missing quote", TD_STR_INIT("[\"x]"), REJECT},
    {"half true", TD_STR_INIT("[tru]"), REJECT},
    {"half false", TD_STR_INIT("[fals]"), REJECT},
    {"half null", TD_STR_INIT("[nul]"), REJECT},
    {"half true at top", TD_STR_INIT("tru"), REJECT},
    {"capital true", TD_STR_INIT("[True]"), REJECT},
    {"capital null", TD_STR_INIT("[NULL]"), REJECT},
    {"capital false", TD_STR_INIT("[FALSE]"), REJECT},
    {"word with a tail", TD_STR_INIT("[nullx]"), REJECT},
    {"word glued to a word", TD_STR_INIT("truefalse"), REJECT},
    {"true with a digit", TD_STR_INIT("true1"), REJECT},
    {"plus one", TD_STR_INIT("[+1]"), REJECT},
    {"plus plus", TD_STR_INIT("[++1234]"), REJECT},
    {"minus minus", TD_STR_INIT("[--1]"), REJECT},
    {"minus NaN", TD_STR_INIT("[-NaN]"), REJECT},
    {"minus word", TD_STR_INIT("[-foo]"), REJECT},
    {"minus space one", TD_STR_INIT("[- 1]"), REJECT},
    {"minus alone", TD_STR_INIT("-"), REJECT},
    {"minus then end in array", TD_STR_INIT("[-"), REJECT},
    {"leading zero", TD_STR_INIT("[012]"), REJECT},
    {"minus leading zero", TD_STR_INIT("[-012]"), REJECT},
    {"two zeros", TD_STR_INIT("[00]"), REJECT},
    {"minus two zeros", TD_STR_INIT("[-00]"), REJECT},
    {"dot first", TD_STR_INIT("[.5]"), REJECT},
    {"dot minus one", TD_STR_INIT("[.-1]"), REJECT},
    {"dot one exponent", TD_STR_INIT("[.2e-3]"), REJECT},
    {"minus dot", TD_STR_INIT("[-.123]"), REJECT},
    {"dot last", TD_STR_INIT("[1.]"), REJECT},
    {"minus dot last", TD_STR_INIT("[-2.]"), REJECT},
    {"dot exponent", TD_STR_INIT("[0.e1]"), REJECT},
    {"two dots", TD_STR_INIT("[1.2.3]"), REJECT},
    {"empty exponent", TD_STR_INIT("[1e]"), REJECT},
    {"empty exponent plus", TD_STR_INIT("[1e+]"), REJECT},
    {"empty exponent minus", TD_STR_INIT("[1e-]"), REJECT},
    {"capital empty exponent", TD_STR_INIT("[1E]"), REJECT},
    {"capital empty exponent plus", TD_STR_INIT("[1E+]"), REJECT},
    {"zero empty exponent", TD_STR_INIT("[0e]"), REJECT},
    {"zero capital exponent", TD_STR_INIT("[0E+]"), REJECT},
    {"two signs in exponent", TD_STR_INIT("[1e+-2]"), REJECT},
    {"two exponents", TD_STR_INIT("[1e2e3]"), REJECT},
    {"exponent with a fraction", TD_STR_INIT("[1e2.5]"), REJECT},
    {"exponent with space", TD_STR_INIT("[1e 2]"), REJECT},
    {"thousands by space", TD_STR_INIT("[1 000.0]"), REJECT},
    {"hexadecimal", TD_STR_INIT("[0x42]"), REJECT},
    {"hexadecimal digit", TD_STR_INIT("[0x1]"), REJECT},
    {"infinity", TD_STR_INIT("[Infinity]"), REJECT},
    {"minus infinity", TD_STR_INIT("[-Infinity]"), REJECT},
    {"inf", TD_STR_INIT("[Inf]"), REJECT},
    {"NaN", TD_STR_INIT("[NaN]"), REJECT},
    {"nan", TD_STR_INIT("[nan]"), REJECT},
    {"number with a letter", TD_STR_INIT("[1a]"), REJECT},
    {"minus with a letter", TD_STR_INIT("[-1x]"), REJECT},
    {"fraction with a letter", TD_STR_INIT("[1.8011670033376514H-308]"), REJECT},
    {"expression", TD_STR_INIT("[1+2]"), REJECT},
    {"invalid byte in a number", TD_STR_INIT("[123\xe5]"), REJECT},
    {"invalid byte after exponent", TD_STR_INIT("[1e1\xe5]"), REJECT},
    {"wide digit", TD_STR_INIT("[\xef\xbc\x91]"), REJECT},
    {"number glued to a word", TD_STR_INIT("[1true]"), REJECT},
    {"underscore", TD_STR_INIT("[1_000]"), REJECT},
    {"NUL after a number", TD_STR_INIT("[1\x00]"), REJECT},
    {"colon alone in object", TD_STR_INIT("{:1}"), REJECT},
    {"only a name", TD_STR_INIT("{\"a\"}"), REJECT},
    {"name and colon", TD_STR_INIT("{\"a\":"), REJECT},
    {"name, colon, close", TD_STR_INIT("{\"a\":}"), REJECT},
    {"no colon", TD_STR_INIT("{\"a\" \"b\"}"), REJECT},
    {"comma for colon", TD_STR_INIT("{\"x\", null}"), REJECT},
    {"double colon", TD_STR_INIT("{\"x\"::\"b\"}"), REJECT},
    {"name without quotes", TD_STR_INIT("{a: \"b\"}"), REJECT},
    {"name in single quotes", TD_STR_INIT("{'a':0}"), REJECT},
    {"number as name", TD_STR_INIT("{1:1}"), REJECT},
    {"null as name", TD_STR_INIT("{null:null}"), REJECT},
    {"array as name", TD_STR_INIT("{[]:1}"), REJECT},
    {"huge number as name", TD_STR_INIT("{9999E9999:1}"), REJECT},
    {"trailing comma in object", TD_STR_INIT("{\"id\":0,}"), REJECT},
    {"many trailing commas", TD_STR_INIT("{\"id\":0,,,,,}"), REJECT},
    {"leading comma in object", TD_STR_INIT("{,\"a\":1}"), REJECT},
    {"double comma in object", TD_STR_INIT("{\"a\":\"b\",,\"c\":\"d\"}"), REJECT},
    {"repeated null without names", TD_STR_INIT("{null,null}"), REJECT},
    {"not closed object", TD_STR_INIT("{\"a\":1"), REJECT},
    {"open brace", TD_STR_INIT("{"), REJECT},
    {"open brace and comma", TD_STR_INIT("{,"), REJECT},
    {"object not closed after comma", TD_STR_INIT("{\"a\":1,"), REJECT},
    {"comment after", TD_STR_INIT("{\"a\":\"b\"}/**/"), REJECT},
    {"line comment after", TD_STR_INIT("{\"a\":\"b\"}//"), REJECT},
    {"slash after", TD_STR_INIT("{\"a\":\"b\"}/"), REJECT},
    {"hash comment after", TD_STR_INIT("{\"a\":\"b\"}#"), REJECT},
    {"comment before", TD_STR_INIT("/**/{}"), REJECT},
    {"comment inside", TD_STR_INIT("{\"a\":/*x*/\"b\"}"), REJECT},
    {"object with an emoji name", TD_STR_INIT("{\xf0\x9f\x87\xa8\xf0\x9f\x87\xad}"), REJECT},
    {"two words as value", TD_STR_INIT("{\"a\":true false}"), REJECT},
    {"two values in object", TD_STR_INIT("{\"a\":\"a\" 123}"), REJECT},
    {"name not closed", TD_STR_INIT("{\"a"), REJECT},
    {"lone brace", TD_STR_INIT("}"), REJECT},
    {"lone bracket", TD_STR_INIT("]"), REJECT},
    {"brace bracket", TD_STR_INIT("{]"), REJECT},
    {"bracket brace", TD_STR_INIT("[}"), REJECT},
    {"single quoted string", TD_STR_INIT("['a']"), REJECT},
    {"single quote alone", TD_STR_INIT("'"), REJECT},
    {"no quotes", TD_STR_INIT("[a]"), REJECT},
    {"string not closed", TD_STR_INIT("\""), REJECT},
    {"string not closed after text", TD_STR_INIT("\"abc"), REJECT},
    {"backslash at the end", TD_STR_INIT("\"\\"), REJECT},
    {"escaped quote at the end", TD_STR_INIT("[\"\\\""), REJECT},
    {"odd backslashes", TD_STR_INIT("[\"\\\\\\\"]"), REJECT},
    {"escaped x", TD_STR_INIT("[\"\\x00\"]"), REJECT},
    {"escaped single quote", TD_STR_INIT("[\"\\'\"]"), REJECT},
    {"escaped a", TD_STR_INIT("[\"\\a\"]"), REJECT},
    {"escaped zero", TD_STR_INIT("[\"\\0\"]"), REJECT},
    {"escaped newline byte", TD_STR_INIT("[\"\\\n\"]"), REJECT},
    {"escaped tab byte", TD_STR_INIT("[\"\\\t\"]"), REJECT},
    {"escaped emoji", TD_STR_INIT("[\"\\\xf0\x9f\x8c\x80\"]"), REJECT},
    {"escaped invalid byte", TD_STR_INIT("[\"\\\xe5\"]"), REJECT},
    {"escaped NUL byte", TD_STR_INIT("[\"\\\x00\"]"), REJECT},
    {"capital U escape", TD_STR_INIT("[\"\\U0041\"]"), REJECT},
    {"short u escape", TD_STR_INIT("[\"\\u00A\"]"), REJECT},
    {"u escape without digits", TD_STR_INIT("[\"\\u\"]"), REJECT},
    {"u escape with a bad digit", TD_STR_INIT("[\"\\u00G0\"]"), REJECT},
    {"u escape cut by the end", TD_STR_INIT("[\"\\u00"), REJECT},
    {"u escape with a sign", TD_STR_INIT("[\"\\u+041\"]"), REJECT},
    {"u escape with invalid bytes", TD_STR_INIT("[\"\\u\xe5\xe5\xe5\xe5\"]"), REJECT},
    {"pair cut short", TD_STR_INIT("[\"\\uD834\\uDd\"]"), REJECT},
    {"pair without u", TD_STR_INIT("[\"\\uD800\\x\"]"), REJECT},
    {"pair cut after backslash", TD_STR_INIT("[\"\\uD800\\\"]"), REJECT},
    {"raw newline", TD_STR_INIT("[\"new\nline\"]"), REJECT},
    {"raw tab", TD_STR_INIT("[\"\t\"]"), REJECT},
    {"raw NUL",
     TD_STR_INIT("[\"a\x00"
                 "a\"]"),
     REJECT},
    {"raw unit separator", TD_STR_INIT("[\"\x1f\"]"), REJECT},
    {"raw carriage return", TD_STR_INIT("[\"a\rb\"]"), REJECT},
    {"raw newline in a name", TD_STR_INIT("{\"a\nb\":1}"), REJECT},
    {"raw tab in a second block", TD_STR_INIT("[\"0123456789abcdef0123\t\"]"), REJECT},
    {"text after an object", TD_STR_INIT("{\"a\":1}\"x\""), REJECT},
    {"text after a string", TD_STR_INIT("\"\" x"), REJECT},
    {"two arrays", TD_STR_INIT("[][]"), REJECT},
    {"two objects on lines", TD_STR_INIT("{}\n{}"), REJECT},
    {"array then word", TD_STR_INIT("[]null"), REJECT},
    {"extra brace", TD_STR_INIT("{}}"), REJECT},
    {"NUL after a value", TD_STR_INIT("[]\x00"), REJECT},
    {"NUL before a value", TD_STR_INIT("\x00[]"), REJECT},
    {"NUL between",
     TD_STR_INIT("[1,\x00"
                 "2]"),
     REJECT},
    {"angle bracket", TD_STR_INIT("<"), REJECT},
    {"angle null", TD_STR_INIT("<null>"), REJECT},
    {"ampersand", TD_STR_INIT("&"), REJECT},
    {"asterisk", TD_STR_INIT("*"), REJECT},
    {"lone semicolon", TD_STR_INIT("[1];"), REJECT},
    {"lone invalid byte", TD_STR_INIT("\xe5"), REJECT},
    {"lone continuation", TD_STR_INIT("\x80"), REJECT},
    {"word asd", TD_STR_INIT("asd"), REJECT},
    {"number with space inside", TD_STR_INIT("1 2"), REJECT},
    {"unicode separator as space", TD_STR_INIT("[\xe2\x81\xa0]"), REJECT},
    {"object with trailing garbage", TD_STR_INIT("{\"a\":true}x"), REJECT},
};

/*
 * What the RFC leaves to the reader. Our choices: numbers are kept as text, so none is too large;
 * text that is not well-formed UTF-8, or that could not be written as such (halves of surrogate
 * pairs), is refused; other encodings and a byte order mark are refused.
 */
static const struct suite_row choice_rows[] = {
    {"integer past 64 bits", TD_STR_INIT("[123123123123123123123123123123]"), ACCEPT},
    {"negative integer past 64 bits", TD_STR_INIT("[-123123123123123123123123123123]"), ACCEPT},
    {"overflowing real", TD_STR_INIT("[123123e100000]"), ACCEPT},
    {"overflowing negative real", TD_STR_INIT("[-123123e100000]"), ACCEPT},
    {"underflowing real", TD_STR_INIT("[123e-10000000]"), ACCEPT},
    {"huge exponent", TD_STR_INIT("[0.4e00669999999999999999999999999999999999999999999999999999]"),
     ACCEPT},
    {"huge negative exponent", TD_STR_INIT("[123.456e-789999999999999999999]"), ACCEPT},
    {"overflow at the edge", TD_STR_INIT("[1.5e+9999]"), ACCEPT},
    {"lone high half", TD_STR_INIT("[\"\\uDADA\"]"), REJECT},
    {"lone low half", TD_STR_INIT("[\"\\uDFAA\"]"), REJECT},
    {"high half then text", TD_STR_INIT("[\"\\uD888\\u1234\"]"), REJECT},
    {"high half then escape", TD_STR_INIT("[\"\\uD800\\n\"]"), REJECT},
    {"two high halves", TD_STR_INIT("[\"\\uD800\\uD800\"]"), REJECT},
    {"halves in wrong order", TD_STR_INIT("[\"\\uDd1e\\uD834\"]"), REJECT},
    {"lone half in a name", TD_STR_INIT("{\"\\uDFAA\":0}"), REJECT},
    {"high half then text bytes", TD_STR_INIT("[\"\\ud800abc\"]"), REJECT},
    {"encoded surrogate", TD_STR_INIT("[\"\xed\xa0\x80\"]"), REJECT},
    {"encoded low surrogate", TD_STR_INIT("[\"\xed\xbf\xbf\"]"), REJECT},
    {"overlong two bytes", TD_STR_INIT("[\"\xc0\xaf\"]"), REJECT},
    {"overlong three bytes", TD_STR_INIT("[\"\xe0\x9f\xbf\"]"), REJECT},
    {"overlong four bytes", TD_STR_INIT("[\"\xf0\x8f\xbf\xbf\"]"), REJECT},
    {"six-byte form", TD_STR_INIT("[\"\xfc\x83\xbf\xbf\xbf\xbf\"]"), REJECT},
    {"past the last character", TD_STR_INIT("[\"\xf4\x90\x80\x80\"]"), REJECT},
    {"lead byte F5", TD_STR_INIT("[\"\xf5\x80\x80\x80\"]"), REJECT},
    {"lone continuation byte", TD_STR_INIT("[\"\x81\"]"), REJECT},
    {"cut three-byte character", TD_STR_INIT("[\"\xe0\xff\"]"), REJECT},
    {"character cut by the quote", TD_STR_INIT("[\"\xe2\x82\"]"), REJECT},
    {"four bytes cut by the quote", TD_STR_INIT("[\"\xf0\x9f\x98\"]"), REJECT},
    {"latin 1", TD_STR_INIT("[\"\xe9\"]"), REJECT},
    {"byte FF", TD_STR_INIT("[\"\xff\"]"), REJECT},
    {"invalid byte in a name", TD_STR_INIT("{\"\xb9\":\"0\"}"), REJECT},
    {"invalid byte after a block", TD_STR_INIT("[\"0123456789abcdef0123456789\xff\"]"), REJECT},
    {"UTF-16 little endian", TD_STR_INIT("[\x00\"\x00\xe9\x00\"\x00]\x00"), REJECT},
    {"UTF-16 big endian", TD_STR_INIT("\x00[\x00\"\x00\xe9\x00\"\x00]"), REJECT},
    {"UTF-16 with mark", TD_STR_INIT("\xff\xfe[\x00]\x00"), REJECT},
    {"mark and object", TD_STR_INIT("\xef\xbb\xbf{}"), REJECT},
};

static bool suite_tree_accepts(td_str text)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *root = NULL;
    struct td_error err = TD_ERROR_INIT;
    int code = td_json_parse(&arena, text, NULL, &root, &err);
    if (code == TD_OK) {
        assert_non_null(root);
        assert_int_equal(err.code, TD_OK);
        return true;
    }
    assert_int_equal(code, TD_INVALID);
    assert_int_equal(err.code, TD_INVALID);
    assert_memory_equal(err.message, "line ", 5);
    assert_null(root);
    return false;
}

static bool suite_tokens_accept(td_str text)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, text, TD_JSON_DEPTH_MAX);
    enum td_json_token token;
    size_t count = 0;
    while ((token = td_json_reader_next(&reader)) > TD_JSON_END) {
        count++;
        assert_true(count <= text.len);
    }
    /* Both ends are final. */
    assert_int_equal(td_json_reader_next(&reader), token);
    return token == TD_JSON_END;
}

static bool suite_skip_accepts(td_str text)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, text, TD_JSON_DEPTH_MAX);
    int code = td_json_reader_skip(&reader);
    return code == TD_OK && td_json_reader_next(&reader) == TD_JSON_END;
}

static void suite_check(const struct suite_row *row, size_t before, size_t after)
{
    td_str text = {.len = before + row->text.len + after};
    char *copy = td_alloc(text.len);
    memset(copy, ' ', text.len);
    memcpy(copy + before, row->text.ptr, row->text.len);
    text.ptr = copy;
    bool expected = row->verdict == ACCEPT;
    bool tree = suite_tree_accepts(text);
    bool tokens = suite_tokens_accept(text);
    bool skip = suite_skip_accepts(text);
    td_free(copy);
    if (tree != expected || tokens != expected || skip != expected) {
        fail_msg("%s, %zu spaces before, %zu after: tree %d, tokens %d, skip %d", row->name, before,
                 after, tree, tokens, skip);
    }
}

static void suite_run(const struct suite_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t before = 0; before <= 16; before++) {
            suite_check(&rows[i], before, 0);
        }
        suite_check(&rows[i], 0, 1);
        suite_check(&rows[i], 3, 40);
    }
}

/* Accept and reject exactly as the RFC says. */
static void test_json_suite_follows_the_rfc(void **state)
{
    (void)state;
    suite_run(suite_rows, sizeof(suite_rows) / sizeof(suite_rows[0]));
}

/* Where the RFC leaves it open, the documented choice. */
static void test_json_suite_follows_our_documented_choices(void **state)
{
    (void)state;
    suite_run(choice_rows, sizeof(choice_rows) / sizeof(choice_rows[0]));
}

static td_str suite_repeat(char *out, td_str opening, td_str inner, td_str closing, size_t depth)
{
    size_t len = 0;
    for (size_t i = 0; i < depth; i++) {
        memcpy(out + len, opening.ptr, opening.len);
        len += opening.len;
    }
    memcpy(out + len, inner.ptr, inner.len);
    len += inner.len;
    for (size_t i = 0; i < depth && closing.len > 0; i++) {
        memcpy(out + len, closing.ptr, closing.len);
        len += closing.len;
    }
    return (td_str){.ptr = out, .len = len};
}

/* Nesting up to the cap is read, one level more is a limit with its place, and a hundred thousand
 * open brackets are no danger. */
static void test_json_suite_nesting_is_capped(void **state)
{
    (void)state;
    static const struct {
        td_str opening;
        td_str inner;
        td_str closing;
        size_t depth;
        int code;
    } rows[] = {
        {TD_STR_INIT("["), TD_STR_INIT(""), TD_STR_INIT("]"), 500, TD_OK},
        {TD_STR_INIT("["), TD_STR_INIT("1"), TD_STR_INIT("]"), 512, TD_OK},
        {TD_STR_INIT("{\"a\":"), TD_STR_INIT("1"), TD_STR_INIT("}"), 512, TD_OK},
        {TD_STR_INIT("["), TD_STR_INIT(""), TD_STR_INIT(""), 400, TD_INVALID},
        {TD_STR_INIT("{\"\":"), TD_STR_INIT(""), TD_STR_INIT(""), 400, TD_INVALID},
        {TD_STR_INIT("["), TD_STR_INIT("1"), TD_STR_INIT("]"), 513, TD_LIMIT},
        {TD_STR_INIT("{\"a\":"), TD_STR_INIT("1"), TD_STR_INIT("}"), 513, TD_LIMIT},
        {TD_STR_INIT("["), TD_STR_INIT(""), TD_STR_INIT(""), 100000, TD_LIMIT},
        {TD_STR_INIT("[{\"\":"), TD_STR_INIT(""), TD_STR_INIT(""), 50000, TD_LIMIT},
    };
    char *out = td_alloc(1 << 20);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_str text =
            suite_repeat(out, rows[i].opening, rows[i].inner, rows[i].closing, rows[i].depth);
        td_auto_arena arena;
        td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
        struct td_json *root = NULL;
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_json_parse(&arena, text, NULL, &root, &err), rows[i].code);
        struct td_json_reader reader;
        td_json_reader_init(&reader, text, 0);
        assert_int_equal(td_json_reader_skip(&reader), rows[i].code);
    }
    td_free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_suite_follows_the_rfc),
        cmocka_unit_test(test_json_suite_follows_our_documented_choices),
        cmocka_unit_test(test_json_suite_nesting_is_capped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
