# halfwatt_fuzz(<name> <target>...)
#
# `<name>_fuzz.cpp` defines LLVMFuzzerTestOneInput; `corpus/<name>/` beside it holds inputs.
# Under any compiler it is built with a plain driver that replays the corpus, as the unit test
# `fuzz.<name>`. With HALFWATT_FUZZ it is also the libFuzzer program `fuzz_<name>`.
function(halfwatt_fuzz name)
  if(HALFWATT_TESTS)
    add_executable(replay_${name} ${name}_fuzz.cpp ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.cpp)
    target_link_libraries(replay_${name} PRIVATE ${ARGN})
    halfwatt_warnings(replay_${name})
    add_test(NAME fuzz.${name}
             COMMAND replay_${name} ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS unit)
  endif()

  if(HALFWATT_FUZZ)
    add_executable(fuzz_${name} ${name}_fuzz.cpp)
    target_link_libraries(fuzz_${name} PRIVATE ${ARGN})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    halfwatt_warnings(fuzz_${name})
  endif()
endfunction()
