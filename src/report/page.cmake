# cmake -DCHART_JS=<file> -DOUT=<file> -P page.cmake
#
# Puts the style, the scripts and Chart.js into page.html. What is left are the {{slots}} that
# html.cpp fills. The policy in the page names the scripts by their hashes, so that nothing
# else can run in it even where escaping failed.
set(here ${CMAKE_CURRENT_LIST_DIR})

# The `'sha256-...'` of a policy, which is base64; CMake gives hexadecimal digits.
function(policy_hash text result)
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(SHA256 digits "${text}")
  set(base64 "")
  foreach(at RANGE 0 60 6)  # 3 bytes are 4 characters; the last group has only 2 bytes
    string(SUBSTRING "${digits}0000" ${at} 6 group)
    foreach(shift 18 12 6 0)
      math(EXPR index "(0x${group} >> ${shift}) & 63")
      string(SUBSTRING "${alphabet}" ${index} 1 character)
      string(APPEND base64 "${character}")
    endforeach()
  endforeach()
  string(SUBSTRING "${base64}" 0 43 base64)
  set(${result} "'sha256-${base64}='" PARENT_SCOPE)
endfunction()

function(read_inline file result)
  file(READ "${file}" text)
  string(REPLACE "\r" "" text "${text}")  # a browser drops them before it takes the hash
  string(TOLOWER "${text}" lower)
  foreach(end "</script" "</style" "<!--")
    string(FIND "${lower}" "${end}" found)
    if(NOT found EQUAL -1)
      message(FATAL_ERROR "${file} contains ${end}, where a browser would end the script")
    endif()
  endforeach()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

file(READ ${here}/page.html page)
file(READ ${here}/chart_js_licence.txt licence)
string(REPLACE "\"" "&quot;" licence "${licence}")
read_inline(${here}/page.css style)
read_inline(${here}/error_bars.js error_bars)
read_inline(${here}/page.js script)
read_inline(${CHART_JS} chart_js)
string(PREPEND script "${error_bars}")
policy_hash("${style}" style_hash)
policy_hash("${script}" script_hash)
policy_hash("${chart_js}" chart_js_hash)

foreach(slot STYLE_HASH SCRIPT_HASH CHART_JS_HASH STYLE LICENCE SCRIPT CHART_JS)
  string(TOLOWER ${slot} value)
  string(REPLACE "@${slot}@" "${${value}}" page "${page}")
endforeach()
file(WRITE ${OUT} "${page}")
