# Writes HEADER with the commit of SOURCE, or "unknown" outside a checkout; leaves it alone when it is the same.
cmake_minimum_required(VERSION 3.22)
execute_process(
  COMMAND git -C "${SOURCE}" rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT "${HEADER}" CONTENT "#define TANDEM_COMMIT \"@commit@\"\n" @ONLY)
