# A room is a static library made of every .c file below its folder. It links only rooms below it, so that an upward
# dependency fails at link time as well as in scripts/check-rooms.
function(tandem_room name)
  cmake_parse_arguments(ROOM "" "" "NEEDS" ${ARGN})
  string(REPLACE "/" "_" target "td_${name}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${name}/*.c")
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}/src")
  # Rooms are linked into programs only. In code for shared libraries (-fPIC) a function that other files may call is never inlined, not
  # even within its own file, since another library could take its place; that costs histograms a sixteenth of their time.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIE)
  target_link_libraries(${target} PUBLIC ${ROOM_NEEDS} PRIVATE tandem_flags)
endfunction()
