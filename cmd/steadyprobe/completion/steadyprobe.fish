# Completion of steadyprobe in fish. Written by: steadyprobe completion fish

function __steadyprobe_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    $words[1] complete -- $words[2..-1] "$current" 2>/dev/null | while read -l -d \t word about
        if test "$word" = :files
            # about is what stands in front of the name, such as --config.file=
            for path in (__fish_complete_path (string replace -- "$about" '' "$current"))
                echo -- "$about$path"
            end
        else
            printf '%s\t%s\n' $word $about
        end
    end
end

complete -c steadyprobe -f -a '(__steadyprobe_complete)'
