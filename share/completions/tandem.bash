# bash completion for tandem. The program itself says what may follow; here is only how bash wants it.

# Words of bash are parted at '=' and ':' too; joined again they are what the program gets.
_tandem() {
    local i joined=() words=() line directive cut value
    for ((i = 0; i <= COMP_CWORD; i++)); do
        if ((i > 1)) && [[ ${COMP_WORDS[i]} == [=:]* || ${joined[-1]} == *[=:] ]]; then
            joined[-1]+=${COMP_WORDS[i]}
        else
            joined+=("${COMP_WORDS[i]}")
        fi
    done
    mapfile -t words < <("${joined[0]}" __complete "${joined[@]:1}" 2>/dev/null)
    ((${#words[@]} > 0)) || return
    directive=${words[-1]#:}
    unset 'words[-1]'
    # Bash replaces what follows the last '=' or ':'.
    value=${joined[-1]}
    [[ $value == --*=* ]] && value=${value#*=}
    cut=${value%"${value##*[=:]}"}
    COMPREPLY=()
    for line in "${words[@]}"; do
        line=${line%%$'\t'*}
        COMPREPLY+=("${line#"$cut"}")
    done
    ((directive & 2)) && compopt -o nospace
    ((${#COMPREPLY[@]} > 0)) && return
    ((directive & 16)) && compopt -o dirnames
    ((directive & 20)) || compopt -o default
}
complete -F _tandem tandem
