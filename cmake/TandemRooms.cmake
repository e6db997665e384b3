# A room is a static library made of every .c file below its folder. It links only rooms below it, so that an upward
# dependency fails at link time as well as in scripts/check-rooms.
function(tandem_room name)
  cmake_parse_arguments(ROOM "" "" "NEEDS" ${ARGN})
  string(REPLACE "/" "_" target "td_${name}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${name}/*.c")
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}/src")
  target_link_libraries(${target} PUBLIC ${ROOM_NEEDS} PRIVATE tandem_flags)
endfunction()
