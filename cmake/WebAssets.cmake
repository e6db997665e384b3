# Writes SOURCE: the table of src/web/assets.h with FILES in it, in their order. CHARTS names the library of charts among them, or is
# empty; LICENCE is served as /licences.txt.
cmake_minimum_required(VERSION 3.22)
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_txt "text/plain; charset=utf-8")

set(arrays "")
set(rows "")
set(number 0)
foreach(file ${FILES})
  get_filename_component(name "${file}" NAME)
  if(file STREQUAL LICENCE)
    set(name licences.txt)
  endif()
  get_filename_component(kind "${name}" LAST_EXT)
  string(SUBSTRING "${kind}" 1 -1 kind)
  file(READ "${file}" hex HEX)
  file(SHA256 "${file}" digest)
  string(SUBSTRING "${digest}" 0 16 digest)
  string(LENGTH "${hex}" size)
  math(EXPR size "${size} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "static const unsigned char asset_${number}[] = {${bytes}0};\n")
  string(APPEND rows "    {\"/${name}\", \"${type_${kind}}\", \"\\\"${digest}\\\"\", asset_${number}, ${size}},\n")
  math(EXPR number "${number} + 1")
endforeach()
if(CHARTS)
  set(charts "\"${CHARTS}\"")
else()
  set(charts NULL)
endif()
file(WRITE "${SOURCE}" "/* Written by cmake/WebAssets.cmake. */
#include \"web/assets_table.h\"

${arrays}
const struct td_web_asset td_web_asset_rows[] = {
${rows}};
const size_t td_web_asset_row_count = ${number};
const char *const td_web_asset_charts = ${charts};
")
