# Tests are found by label: `ctest --preset release -L unit`.
#   unit (no hardware, all of them under a minute), cpu, cuda, multi, root, slow
# They run in the repository's root, so `data/x.csv` and `tests/golden/x.txt` are their paths,
# with HALFWATT_PROGRAM naming the built program.
find_package(GTest REQUIRED)
include(GoogleTest)

set(HALFWATT_TEST_ENVIRONMENT HALFWATT_PROGRAM=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/halfwatt)

# halfwatt_test(<room> [NAME <executable>] [LABEL <label>] SOURCES <source>...)
#
# One gtest executable, `test_<room>` unless NAME says otherwise, labelled `unit` unless LABEL
# says otherwise. A room whose tests need different things calls this once per need.
function(halfwatt_test room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;LABEL" SOURCES)
  if(NOT arg_NAME)
    set(arg_NAME test_${room})
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_SOURCES)  # a room whose tests are still to come; tools/listed finds forgotten ones
    return()
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE halfwatt::${room} GTest::gtest_main)
  target_include_directories(${arg_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  halfwatt_warnings(${arg_NAME})
  gtest_discover_tests(${arg_NAME}
    TEST_PREFIX ${room}.
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    DISCOVERY_TIMEOUT 120  # a sanitized program on a busy machine starts slowly
    PROPERTIES LABELS ${arg_LABEL} ENVIRONMENT "${HALFWATT_TEST_ENVIRONMENT}")
endfunction()

# halfwatt_script_test(<name> [LABEL <label>] SCRIPT <python file> [ARGS <argument>...])
#
# A python3 program that succeeds with 0 and skips with 77. Where there is no python3 the test
# is skipped, and says so.
find_program(HALFWATT_PYTHON3 NAMES python3)
function(halfwatt_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;SCRIPT" ARGS)
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(HALFWATT_PYTHON3)
    add_test(NAME ${name} COMMAND ${HALFWATT_PYTHON3} ${arg_SCRIPT} ${arg_ARGS}
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  else()
    add_test(NAME ${name} COMMAND sh -c "echo 'skipped: python3 is not installed'; exit 77")
  endif()
  set_tests_properties(${name} PROPERTIES
    LABELS ${arg_LABEL} SKIP_RETURN_CODE 77 ENVIRONMENT "${HALFWATT_TEST_ENVIRONMENT}")
endfunction()
