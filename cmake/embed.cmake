# halfwatt_embed(<target> <symbol> <file>)
#
# Puts a text file into the program at build time as the constant
# `extern const std::string_view halfwatt::<symbol>`, which the room declares in a header of its
# own. The same file, run as `cmake -P` with IN, OUT and SYMBOL, writes that source.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${IN}" text)
  file(WRITE "${OUT}"
    "#include <string_view>\n"
    "namespace halfwatt {\n"
    "extern const std::string_view ${SYMBOL};\n"
    "const std::string_view ${SYMBOL} = R\"embedded_text(${text})embedded_text\";\n"
    "}  // namespace halfwatt\n")
  return()
endif()

function(halfwatt_embed target symbol file)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.cpp)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DIN=${file} -DOUT=${source} -DSYMBOL=${symbol} -P ${script}
    DEPENDS ${file} ${script}
    COMMENT "Embedding ${file}"
    VERBATIM)
  # Compilers may warn that a literal is longer than the standard makes every one of them take.
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -w)
  target_sources(${target} PRIVATE ${source})
endfunction()
