# halfwatt_room(<room> <source>...)
#
# A room is a folder under src/, a static library `halfwatt_<room>` and its alias
# `halfwatt::<room>`. What a room may include is what its target_link_libraries names, and what
# those name in turn; tools/layers checks it.
function(halfwatt_room room)
  add_library(halfwatt_${room} STATIC ${ARGN})
  add_library(halfwatt::${room} ALIAS halfwatt_${room})
  # A room of headers alone has no source to tell the linker's language from.
  set_target_properties(halfwatt_${room} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(halfwatt_${room} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  halfwatt_warnings(halfwatt_${room})
endfunction()
