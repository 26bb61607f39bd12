# cmake -DROOT=<tree> -DSOURCES=<list> -DOUTPUT=<file> [-DDEPFILE=<file>] -P HashSources.cmake
#
# Writes the SHA-256 of the sources as a C string. The files of the tree that sources include count, by way of others too,
# and the .cc file beside such a header. Paths of includes begin at the tree's root. A file that is not there is generated
# or of a library, and does not count. DEPFILE receives the names of the files, for the build system.
cmake_minimum_required(VERSION 3.25)
set(visited "")
set(left ${SOURCES})
while(left)
  list(POP_FRONT left source)
  if(source IN_LIST visited)
    continue()
  endif()
  list(APPEND visited "${source}")
  file(STRINGS "${source}" lines REGEX "^[ \t]*#?[ \t]*include[ \t]+\"[^\"]+\"")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^[ \t]*#?[ \t]*include[ \t]+\"([^\"]+)\".*" "\\1" header "${line}")
    string(REGEX REPLACE "\\.h$" ".cc" implementation "${header}")
    foreach(file IN ITEMS "${header}" "${implementation}")
      if(EXISTS "${ROOT}/${file}")
        list(APPEND left "${ROOT}/${file}")
      endif()
    endforeach()
  endforeach()
endwhile()

list(SORT visited)
set(hashes "")
foreach(source IN LISTS visited)
  file(SHA256 "${source}" hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
file(WRITE "${OUTPUT}" "\"${hash}\"\n")

if(DEFINED DEPFILE)
  string(REPLACE ";" " \\\n  " names "${visited}")
  file(WRITE "${DEPFILE}" "${OUTPUT}: \\\n  ${names}\n")
endif()
