# cmake -DSOURCES=<list> -DOUTPUT=<file> -P HashSources.cmake: writes the SHA-256 of the sources' content as a C string.
set(hashes "")
foreach(source IN LISTS SOURCES)
  file(SHA256 "${source}" hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
file(WRITE "${OUTPUT}" "\"${hash}\"\n")
