# The page and the report travel inside the program: the files of web/ and, where Debian's libjs-dygraphs is installed, dygraphs with its
# licence. The generated table depends on their bytes alone, so equal inputs give equal programs.
set(TANDEM_DYGRAPHS "" CACHE PATH "folder of dygraph.min.js; empty: where the package puts it; none: build without")
set(TANDEM_DYGRAPHS_LICENCE "/usr/share/doc/libjs-dygraphs/copyright" CACHE FILEPATH "licence of dygraphs")

file(GLOB web_files CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/web/*.html" "${CMAKE_SOURCE_DIR}/web/*.css" "${CMAKE_SOURCE_DIR}/web/*.js")
list(SORT web_files)
set(web_dygraphs "${TANDEM_DYGRAPHS}")
if(NOT web_dygraphs)
  set(web_dygraphs /usr/share/javascript/dygraphs)
endif()
set(web_charts "")
set(web_parts "${web_dygraphs}/dygraph.min.js" "${web_dygraphs}/dygraph.min.css" "${TANDEM_DYGRAPHS_LICENCE}")
set(web_has_dygraphs TRUE)
foreach(part ${web_parts})
  if(NOT EXISTS "${part}")
    set(web_has_dygraphs FALSE)
  endif()
endforeach()
if(web_has_dygraphs)
  file(READ "${web_dygraphs}/dygraph.min.js" web_script)
  if(web_script MATCHES "VERSION=\"([0-9.]+)\"")
    set(web_charts "dygraphs ${CMAKE_MATCH_1}")
  else()
    set(web_charts "dygraphs")
  endif()
  unset(web_script)
  list(APPEND web_files ${web_parts})
endif()

set(web_source "${CMAKE_BINARY_DIR}/generated/web_assets.c")
add_custom_command(OUTPUT "${web_source}"
  COMMAND ${CMAKE_COMMAND} "-DFILES=${web_files}" "-DLICENCE=${TANDEM_DYGRAPHS_LICENCE}" "-DCHARTS=${web_charts}" "-DSOURCE=${web_source}"
    -P "${CMAKE_SOURCE_DIR}/cmake/WebAssets.cmake"
  DEPENDS ${web_files} "${CMAKE_SOURCE_DIR}/cmake/WebAssets.cmake"
  COMMENT "Embedding the page" VERBATIM)
target_sources(td_web PRIVATE "${web_source}")
