# HALFWATT_SANITIZE is applied to the whole build: a half-instrumented program reports nonsense.
# Any finding ends the program, so that a test cannot pass with one.
if(HALFWATT_SANITIZE)
  add_compile_options(-fsanitize=${HALFWATT_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HALFWATT_SANITIZE})
endif()

if(HALFWATT_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "HALFWATT_FUZZ needs clang for libFuzzer, found "
                        "${CMAKE_CXX_COMPILER_ID}: use `cmake --preset fuzz`")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
