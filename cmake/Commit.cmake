# Writes HEADER with the commit of SOURCE and its day, those of a source tarball, or "unknown"; leaves it alone when it is the same.
cmake_minimum_required(VERSION 3.22)
execute_process(
  COMMAND git -C "${SOURCE}" rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  file(STRINGS "${SOURCE}/scripts/pack/commit.txt" words)
  string(REGEX MATCH "^[0-9a-f]+" commit "${words}")
  string(SUBSTRING "${commit}" 0 12 commit)
endif()
if(NOT commit)
  set(commit unknown)
endif()
execute_process(
  COMMAND git -C "${SOURCE}" log -1 --format=%ct
  OUTPUT_VARIABLE time OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT time)
  string(REGEX MATCH "[0-9]+$" time "${words}")
endif()
set(day "")
if(time)
  set(ENV{SOURCE_DATE_EPOCH} "${time}")
  string(TIMESTAMP day "%B %d, %Y" UTC)
  string(REPLACE " 0" " " day "${day}")
endif()
file(CONFIGURE OUTPUT "${HEADER}" CONTENT "#define TANDEM_COMMIT \"@commit@\"\n#define TANDEM_COMMIT_DATE \"@day@\"\n" @ONLY)
