# tandem_static(TARGET NAME...): a target that links the archives libNAME.a into the program.
function(tandem_static target)
  add_library(${target} INTERFACE IMPORTED)
  foreach(name ${ARGN})
    find_library(archive_${name} NAMES "lib${name}.a" REQUIRED)
    target_link_libraries(${target} INTERFACE "${archive_${name}}")
  endforeach()
endfunction()
