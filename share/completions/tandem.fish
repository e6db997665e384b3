# fish completion for tandem. The program itself says what may follow; here is only how fish wants it.

function __tandem_complete
    set -l line (commandline -opc)
    set -l last (commandline -ct)
    set -l program $line[1]
    set -l lines ($program __complete $line[2..] "$last" 2>/dev/null)
    test (count $lines) -gt 0; or return
    set -l directive (string sub -s 2 -- $lines[-1])
    set -l prefix (string match -r -- '^--[^=]*=' $last)
    if test (count $lines) -gt 1
        for candidate in $lines[1..-2]
            echo -- "$prefix$candidate"
        end
    else if test (math "bitand($directive, 16)") -ne 0
        __fish_complete_directories $last
    else if test (math "bitand($directive, 4)") -eq 0
        __fish_complete_path "$last"
    end
end

complete -c tandem -f -a '(__tandem_complete)'
